/** How we speak HTTP: problems and where they become responses, representations, request ids, paths and addresses. */
export { createAccessLog } from './access-log.ts';
export {
  type Addresses,
  type AddressOptions,
  createAddresses,
} from './addresses.ts';
export { answerMethod, isRead } from './allow.ts';
export { beforeHead } from './before-head.ts';
export { type BodySchema, createBodySchema, jsonPointer } from './body-schema.ts';
export { answerClientErrors } from './client-errors.ts';
export { endedStatus } from './ended-status.ts';
export {
  createExchange,
  type Exchange,
  exchangeOf,
  publicBase,
} from './exchange.ts';
export {
  builtInFormatters,
  type Formatter,
  htmlFormatter,
  jsonFormatter,
  withHtmlPage,
  yamlFormatter,
} from './formatters.ts';
export {
  dataMarkup,
  escapeHtml,
  type HtmlPage,
  html,
  htmlDocument,
  type Markup,
  pageHeaders,
  phraseMarkup,
  proseMarkup,
} from './html.ts';
export { fingerprintOf, idempotencyKeyOf } from './idempotency-key.ts';
export { announcesBody, bodyReadBefore, bodyTooLarge, isBodyWhole, markBodyWhole } from './incoming-body.ts';
export { isolate } from './isolate.ts';
export { jsonBodyBytesMax, readJsonBody } from './json-body.ts';
export { type Logger, silentLogger } from './logger.ts';
export { type Precondition, preconditionFailed, preconditionOf } from './precondition.ts';
export {
  type ErrorBody,
  errorBody,
  type Fault,
  Problem,
  type ProblemOptions,
  problem,
} from './problem.ts';
export {
  createProblemResponses,
  type ProblemResponsesOptions,
} from './problem-responses.ts';
export { type ProblemKind, type ProblemSlug, problems, problemTitle } from './problems.ts';
export { queryFault } from './query-fault.ts';
export { redirectTo } from './redirect.ts';
export { type RepresentOptions, represent } from './represent.ts';
export {
  createRepresentations,
  type Representations,
} from './representations.ts';
export { logFieldsOf, logRequest } from './request-log.ts';
export { originForm, pathOf, searchOf } from './request-target.ts';
export { createSafePath, type SafePathOptions, sanitisePath } from './safe-path.ts';
export { type HttpServer, type HttpServerOptions, serveHttp } from './serve.ts';
export { type AnswerOptions, prepareAnswer, type StoredAnswer, sendAnswer } from './stored-answer.ts';
export { type Trace, type TracedCall, traceHeaders, traceOf } from './trace.ts';
export { boundTracestate, formatTraceparent, parseTraceparent, type TraceParent } from './trace-context.ts';
export { createUpgrades, type Upgrade, type UpgradeListener, type Upgrades, upgradeOf } from './upgrades.ts';
