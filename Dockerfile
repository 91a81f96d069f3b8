# Two stages: the first builds a virtual environment from hashed locks, the second only carries it.
FROM python:3.12-slim-bookworm AS build
WORKDIR /src
COPY requirements requirements
RUN python -m venv /opt/clawback \
 && /opt/clawback/bin/pip install --no-cache-dir --require-hashes -r requirements/runtime.txt -r requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY policies policies
COPY workers workers
COPY bot bot
COPY sandbox sandbox
RUN /opt/clawback/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.12-slim-bookworm
RUN useradd --uid 10001 --create-home --home-dir /data clawback
COPY --from=build /opt/clawback /opt/clawback
USER 10001
ENV CLAWBACK_DATA=/data/clawback CLAWBACK_FLEET=/etc/clawback/fleet.yaml
VOLUME /data
ENTRYPOINT ["/opt/clawback/bin/clawback"]
CMD ["up"]
