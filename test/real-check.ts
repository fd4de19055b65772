import net from 'node:net';
import { createGateway } from '/work/wt/paths/src/gateway/index.ts';
import { sanitisePath } from '/work/wt/paths/src/http/index.ts';
import { authRecordOf, labelled, limitRecordOf, mappingOf } from '/work/wt/paths/test/support/edge.ts';
import { servers as models } from '/work/wt/paths/test/support/server-models.ts';
const guarded = [{ name: 'admin', prefix: '/admin' },{ name: 'api-admin', prefix: '/api/admin' },{ name: 'link', prefix: '/link', bypassAuth: true, labels: { gateway: labelled('x-client') } }];
const gateway = createGateway({ mappings: [...guarded, { name: 'open', prefix: '/', bypassAuth: true }].map((one:any) => mappingOf({ rewrite: '', ...one })), authServices: [{ record: authRecordOf({}), port: () => ({ outcome: 'deny', status: 401, headers: {} }) as any }], rateLimitService: limitRecordOf(), limiter: { shouldRateLimit: () => ({ overallCode: 'OK', statuses: [] }) as any }, services: { hotel: async () => {} }, resolve: (name:string) => ({ kind: 'local', name }) as any });
const { table, checkAmbiguity } = gateway.parts;
function decide(path: string) { const plain = sanitisePath(path); if (plain===undefined) return undefined; const a = { method: 'GET', path: plain, search: '', host: '', headers: {}, client: '' }; const route = table.match(a)!.route; let ok = true; try { checkAmbiguity?.(a, route); } catch { ok = false; } return { plain, name: route.name, ok }; }
const names: Record<number,string> = {7101:'tomcat 10',7102:'tomcat 10, encodedSolidusHandling=decode',7103:'tomcat 10, encodedSolidusHandling=passthrough',7104:'jetty 12',7105:'jetty 12, ambiguous paths allowed',7106:'jetty legacy',7107:'undertow',7108:'undertow, allow-encoded-slash',7121:'go net/http mux',7131:'express',7132:'express4',7133:'fastify',7134:'fastify opts',7135:'node, new URL',7136:'node, new URL, decoded',7137:'node, url.parse',7138:'koa router',7141:'django',7142:'werkzeug',7151:'nginx',7152:'nginx, merge_slashes off',7153:'nginx $uri > tomcat decode',7154:'nginx $uri > new URL decoded',7155:'nginx / > go',7156:'nginx merge off $uri > new URL decoded',7157:'nginx / > tomcat',7158:'nginx $uri > jetty unsafe',7159:'nginx $uri > express',7161:'caddy',7171:'envoy, UNESCAPE_AND_FORWARD',7172:'envoy'};
const tokens = ['/', '/', '/', '/', '%2F', '%252F', ';', ';x', '%3B', '%253B', '%3F', '%253F', '%23','.', '%20', '%2520', '%C0%AF', '%EF%BC%8F','admin', 'admin', 'ADMIN', 'adm%C4%B1n', 'api', 'api', 'Api', 'lin%E2%84%AA', 'link', 'x', 'x.php','+',':$i30:$x', '%00'.slice(3)];
let seed = Number(process.env.SEED ?? 7); const rnd = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
const fixed = ['/;%2Fpub/admin/users','/api;%2Fx/admin/keys','/admin%3Fx','/LOGIN','/ADMIN','/%2F%2Fadmin','/%2Fx/admin','/%252Fx/admin','//x'];
const paths = new Set<string>(fixed); const N = Number(process.env.N ?? 3000);
while (paths.size < N) { let p='/'; const n = 1+Math.floor(rnd()*7); for (let i=0;i<n;i++) p+=tokens[Math.floor(rnd()*tokens.length)]; if (/adm|lin/i.test(p)) paths.add(p); }
async function ask(port: number, path: string, sock: {s?: net.Socket}): Promise<string> {
  return new Promise((resolve) => { const s = net.connect(port, '127.0.0.1'); let t=''; s.setTimeout(5000,()=>{s.destroy();}); s.on('data',d=>{t+=d.toString('latin1')}); s.on('close',()=>resolve(t)); s.on('error',()=>{}); s.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`,'latin1'); });
}
const classify = (p: string) => guarded.find(({prefix}) => p===prefix||p.startsWith(prefix+'/'))?.name ?? 'open';
let refused=0, accepted=0; const bypass: string[] = []; const mism: Record<string, string[]> = {}; const caughtBy: Record<string, number> = {};
const list = [...paths].map(p => ({p, d: decide(p)})).filter(x => x.d);
for (const {d} of list) d!.ok ? accepted++ : refused++;
for (const port of Object.keys(names).map(Number)) {
  for (let i=0;i<list.length;i+=16) await Promise.all(list.slice(i,i+16).map(async ({p,d}) => {
    const t = await ask(port, d!.plain, {}); const status = t.slice(9,12); const body = t.split('\r\n\r\n').slice(1).join('').replace(/^[0-9a-f]+\r\n/,'').replace(/\r\n0\r\n.*/s,'').trim();
    const served = status==='200' && ['admin','api-admin','link','open'].includes(body) ? body : undefined;
    if (served && served !== d!.name) { if (d!.ok) bypass.push(`${names[port]} ${p} -> ${served}, chosen ${d!.name}`); else caughtBy[names[port]] = (caughtBy[names[port]]??0)+1; }
    const model = (models as any)[names[port]]; if (model) { const m = model(d!.plain); const mc = m===undefined?undefined:classify(m); if (served && mc !== served) (mism[names[port]] ??= []).push(`${d!.plain} real ${served} model ${mc} (${m})`); }
  }));
}
console.log({paths: list.length, accepted, refused, bypass: bypass.length}); console.log(bypass.slice(0,30)); console.log('real bypass attempts that the gateway refused', caughtBy);
for (const [n,l] of Object.entries(mism)) console.log(n, l.length, l.slice(0,4));
process.exit(0);
