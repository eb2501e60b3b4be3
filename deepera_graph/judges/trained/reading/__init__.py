"""Networks of the local judge: encoder, reader, and the sentence to quote."""
