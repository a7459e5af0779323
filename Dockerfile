# sbbf with what object stores and encrypted files need. docs/how-to/install.md says how to run it.
#
# Both stages have the same Python, in the same place: the second one takes the environment of the first. The first has a C compiler.
ARG BUILD=python:3.13
ARG BASE=python:3.13-slim

FROM ${BUILD} AS build
COPY pyproject.toml setup.py README.md LICENSE /source/
COPY sbbf_tool /source/sbbf_tool
COPY pyspark_sbbf /source/pyspark_sbbf
RUN python3 -m venv /opt/sbbf \
    && /opt/sbbf/bin/python -m pip install --no-cache-dir "/source[objects,encryption]" \
    && /opt/sbbf/bin/python -c "import sbbf_tool.bloom._kernel, sbbf_tool.parquet._compact"

FROM ${BASE}
COPY --from=build /opt/sbbf /opt/sbbf
ENV PATH=/opt/sbbf/bin:$PATH
# A number, so that Kubernetes can tell that it is not root; no name is needed.
USER 10001:10001
WORKDIR /data
ENTRYPOINT ["sbbf"]
CMD ["--help"]
