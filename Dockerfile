# Pennon with its embedded stores. All data is in the volume /var/lib/pennon. Debian, because the embedded ClickHouse
# needs glibc: an Alpine image would start without it.

FROM node:24-bookworm-slim AS build
# What Pennon's own Node 26, an npm package, links to beside glibc.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends libatomic1 \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/pennon
COPY package.json package-lock.json tsconfig.json .npmrc NOTICE ./
COPY bin bin
COPY scripts scripts
# `npm ci --omit=dev`, by whose own list of packages bin/pennon knows that nothing is missing.
RUN node scripts/ensure-installed.mjs --production
COPY src src
COPY web web
# Builds the screens, and removes what only their build needs.
RUN npm run ui:build && npm run ui:prune && find web -mindepth 1 -maxdepth 1 ! -name dist -exec rm -r {} +

FROM debian:bookworm-slim
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends libatomic1 \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --system --gid 10001 pennon \
 && useradd --system --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/pennon pennon \
 && install -d -m 0700 -o pennon -g pennon /var/lib/pennon \
 && ln -s /opt/pennon/bin/pennon /usr/local/bin/pennon
COPY --from=build /opt/pennon /opt/pennon
WORKDIR /opt/pennon
# Of the compiled sources nothing is kept in the image, which its user cannot write to.
ENV PATH=/opt/pennon/node_modules/.bin:$PATH \
    NODE_COMPILE_CACHE=/tmp/pennon-compiled \
    HOST=0.0.0.0 \
    PORT=8000 \
    PENNON_DATA=/var/lib/pennon
# By number: Kubernetes asks for one to know that it is not root.
USER 10001:10001
VOLUME /var/lib/pennon
EXPOSE 8000
# A stop finishes open requests within ten seconds: give it some more before it is killed (`docker stop -t 15`).
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/_liveness').then(answer => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--disable-warning=ExperimentalWarning", "--max-semi-space-size=8", "--import", "./bin/preload.js", "src/main.ts", "serve"]
