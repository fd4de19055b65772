/** Bounds of a request to a rate-limit service, which the service enforces and labels must observe. */

/**
 * Lengths are in UTF-16 code units. A value may be as long as a whole header block (60 KiB in Envoy). With a lower
 * bound, clients could bypass a gateway that fails open by sending a header that is too long for the service.
 */
export const requestBounds = Object.freeze({ domain: 256, descriptors: 64, entries: 32, key: 256, value: 65_536 });

/** The maximum size of the whole request. */
export const requestBytesMax = 1_048_576;
