"""Tables that are computed in an AWS job: job selection, code upload, request and response."""
