"""Cross-encoders tuned on questions of BioASQ."""
