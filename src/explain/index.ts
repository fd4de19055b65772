/** Explains how the gateway would handle a request, stage by stage, without sending or counting it. */
export { createExplainEndpoint, explainForm, parseHeader } from './endpoint.ts';
export { createExplain, type EntrySettings, type Explain } from './explain.ts';
export type { ExplainRequest, Explanation } from './explanation.ts';
export { formatExplanation } from './sections.ts';
