/** All examples in one process, which share the modules that they load. */
import './embedded.ts';
import './own-service.ts';
import './rate-limit-service.ts';
