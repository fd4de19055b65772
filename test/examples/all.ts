/** Runs all examples in one process, so that they share loaded modules. */
import './embedded.ts';
import './own-service.ts';
import './rate-limit-service.ts';
