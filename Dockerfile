# Builds frontdesk from this checkout: docker build -t frontdesk .
# config/deploy/README.md says how to run it.
FROM node:24-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build && npm prune --omit=dev --ignore-scripts
# Declarations and source maps are for editors.
RUN find dist node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete
RUN mkdir data

# Has the libraries that Node needs, certificates and time zones, but no shell and no package manager.
FROM gcr.io/distroless/cc-debian12
LABEL org.opencontainers.image.title="frontdesk" \
      org.opencontainers.image.description="An API gateway for a handful of services, with authentication and rate limits" \
      org.opencontainers.image.licenses="MIT"
# So that the default CONFIG_DIR is /config, and the default database is in /data.
WORKDIR /
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /app/package.json /app/
COPY --from=build /app/config /app/config
COPY --from=build /app/proto /app/proto
COPY --from=build /app/schema /app/schema
COPY --from=build /app/node_modules /app/node_modules
COPY --from=build /app/dist /app/dist
# A new volume that is mounted here belongs to the same user.
COPY --from=build --chown=65532:65532 /app/data /data
# HOST is inside the container: its networks and the ports that are published decide who reaches it.
# glibc returns the memory of a password check to the system (MALLOC_TRIM_THRESHOLD_).
ENV HOST=0.0.0.0 \
    ADMIN_PORT=9090 \
    MALLOC_TRIM_THRESHOLD_=131072
# The gateway, the rate-limit service (gRPC), the auth service, and metrics and probes without credentials.
EXPOSE 8080 8081 8082 9090
# A number, because Kubernetes cannot tell from a name that it is not root.
USER 65532:65532
# Asks whether the process responds. Whether it is ready depends on databases as well, which no restart repairs.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["node", "-e", "require('node:http').get({ host: '127.0.0.1', port: process.env.ADMIN_PORT, path: '/livez' }, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on('error', () => process.exit(1))"]
# Without a shell, which would not pass signals on.
ENTRYPOINT ["node", "/app/dist/main.js"]
CMD ["serve"]
