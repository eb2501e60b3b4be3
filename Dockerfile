# deepera-graph as a server: `docker build -t deepera . && docker run -p 127.0.0.1:8000:8000 deepera`.
# Anything after the image's name is a command of `deepera`: `docker run deepera demo`; the other program is
# `docker run --entrypoint deepera-lab deepera`.
FROM python:3.12-slim AS build
WORKDIR /source
RUN pip install --no-cache-dir build
COPY . .
RUN python -m build --wheel --outdir /dist

FROM python:3.12-slim
COPY --from=build /dist /dist
RUN pip install --no-cache-dir "$(ls /dist/*.whl)[serve,documents,mcp]" && rm -r /dist \
    && useradd --create-home --uid 10001 deepera
USER deepera
WORKDIR /home/deepera
# Collections, and what chat models answered; a volume that is mounted here is then this user's.
RUN mkdir -p .local/share/deepera .cache/deepera
ENV PYTHONUNBUFFERED=1
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["python", "-c", \
    "import urllib.request as web; web.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["deepera"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8000"]
