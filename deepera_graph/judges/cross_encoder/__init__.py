"""A cross-encoder as the judge: ONNX, sentence-transformers, or any object that scores pairs."""

from deepera_graph.judges.cross_encoder.backend import encoder_backend, encoder_backend_from_spec

__all__ = ["encoder_backend", "encoder_backend_from_spec"]
