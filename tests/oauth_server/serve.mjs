// A real OAuth 2 server for tests: `oidc-provider` on loopback, with device flow, PKCE, refresh token rotation and revocation.
//
//     npm install --prefix DIR oidc-provider@8
//     node serve.mjs DIR [ACCESS_TOKEN_LIFE_S]
//
// Prints its address when it listens, and serves until its standard input ends. GET /me answers 200 to a good access token.
import http from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [, , dir, life] = process.argv;
const found = createRequire(`${dir}/`).resolve('oidc-provider');
const { default: Provider } = await import(pathToFileURL(found));

const server = http.createServer();
// A browser on a busy machine may come back to a connection later than it would be closed.
server.keepAliveTimeout = 0;
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: 'agentd-test',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
      response_types: ['code'],
      redirect_uris: ['http://127.0.0.1/callback'],
    }],
    features: { deviceFlow: { enabled: true }, revocation: { enabled: true }, devInteractions: { enabled: true } },
    pkce: { required: () => true, methods: ['S256'] },
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    ttl: { AccessToken: Number(life ?? 3600), RefreshToken: 86400, Grant: 86400, Session: 86400, Interaction: 600, DeviceCode: 600, AuthorizationCode: 60, IdToken: 600 },
    findAccount: async (_, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
    cookies: { keys: ['a test'] },
  });
  server.on('request', provider.callback());
  console.log(issuer);
  // Nobody reads more than that, and the server would end with the pipe.
  console.log = console.info = () => {};
});
process.stdin.on('end', () => process.exit(0)).resume();
