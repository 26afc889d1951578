# The image of callgate: Node, the package with its dependencies, the few shared libraries that they load, and nothing else:
# no shell, no package manager, no user but the one that it runs as. docs/docker.md says how it is used.
#
#   docker build -t callgate .
#
# NODE_IMAGE is the one thing that comes from elsewhere. Pin it by digest for what you release:
#   --build-arg NODE_IMAGE=docker.io/library/node:24-bookworm-slim@sha256:…
# It must be a glibc one; its Node, and the libraries that it loads, are what the image gets.
ARG NODE_IMAGE=docker.io/library/node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /src
# No install script is run, so nothing is compiled and nobody else's code runs here but the bundler's.
# An own registry or its credentials come as a secret, which no layer keeps: --secret id=npmrc,src=$HOME/.npmrc
COPY package.json package-lock.json ./
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run --silent build && npm pack --ignore-scripts --silent --pack-destination /tmp
# What the package ships, and what the lock file says that it needs.
RUN mkdir -p /image/opt/callgate \
  && tar -xzf /tmp/callgate-*.tgz -C /image/opt/callgate --strip-components=1 \
  && cp package-lock.json /image/opt/callgate/
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc cd /image/opt/callgate \
  && npm ci --omit=dev --ignore-scripts --no-audit --no-fund && rm package-lock.json
RUN sh docker/assemble.sh /image

FROM scratch
COPY --from=build /image/ /
LABEL org.opencontainers.image.title="callgate" \
  org.opencontainers.image.description="The gate through which every tool call of an AI agent passes" \
  org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production CALLGATE_SOCKET=/run/callgate/health.sock
# Nobody's number outside. The directories of sockets and state are its own, and have to be volumes; all else is root's, and never
# written: run it with --read-only.
USER 65532:65532
WORKDIR /
STOPSIGNAL SIGTERM
# As role `health`, which may ask for callgate.status and nothing else (examples/docker/callgate.toml). Of a role's program it
# says nothing: switch it off there.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s --retries=3 \
  CMD ["/usr/local/bin/node", "/opt/callgate/dist/bin/callgate.js", "status", "--json"]
# The program is PID 1 itself: it takes SIGTERM and SIGHUP, and the daemon starts no process that would have to be reaped.
ENTRYPOINT ["/usr/local/bin/node", "/opt/callgate/dist/bin/callgate.js"]
CMD ["serve", "--config", "/etc/callgate/callgate.toml"]
