/** Settings of an HTTP server in tests: a free port and the default bounds. */

export const httpLimits = Object.freeze({
  host: '127.0.0.1',
  port: 0,
  hostSetting: 'HOST',
  portSetting: 'PORT',
  headerBytesMax: 16_384,
  headerTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveTimeoutMs: 72_000,
  pipelineMax: 8,
  responseIdleTimeoutMs: 300_000,
});
