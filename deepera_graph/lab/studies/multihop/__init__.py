"""Questions of several hops: methods compared."""
