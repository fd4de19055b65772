/** An HTTP server's settings for a test: any free port, and the bounds that it has by default. */

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
  answerIdleTimeoutMs: 300_000,
});
