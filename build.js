/** Makes dist: compiles the sources, and copies what they serve as it is, the pages' styles and scripts and Swagger UI. */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, rmSync, utimesSync } from 'node:fs';

const swaggerUi = ['swagger-ui.css', 'swagger-ui-bundle.js', 'LICENSE', 'NOTICE'];

const began = new Date();
rmSync('dist', { recursive: true, force: true });
// Errors of types are for `npm run check`. Several threads would each infer the types of the libraries again.
execFileSync('tsc', ['-p', 'src', '--noCheck', '--singleThreaded'], { stdio: 'inherit' });
cpSync('src', 'dist', { recursive: true, filter: (file) => !/\.(?:ts|json|md)$/.test(file) });
for (const name of swaggerUi) cpSync(`node_modules/swagger-ui-dist/${name}`, `dist/rest/openapi/swagger-ui/${name}`);
// npm makes it executable for an install of its own alone, not when the build runs again below a link to this checkout.
// Tests build again when main.js is older than a source, or cannot be executed.
utimesSync('dist/main.js', began, began);
chmodSync('dist/main.js', 0o755);
