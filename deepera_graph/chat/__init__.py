"""The trained local judge: does a passage hold evidence on exactly this question?"""
