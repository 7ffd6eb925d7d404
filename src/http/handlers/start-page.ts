// Answers `/`. A browser is sent to the screens; on a port without them it gets a page that says what runs here and how to
// point an SDK at it, without a key or a script. Any other client gets the text that load balancers configured for PostHog
// check.

import { createHash } from 'node:crypto'
import type { GetBaseUrl } from '../management/kit/base-url.ts'
import type { Route } from '../shared/route.ts'

export interface StartPageOptions {
  readonly version: string
  /** Whether the port of this page also serves the screens. */
  readonly hasScreens: boolean
  readonly addressBase: GetBaseUrl
}

/** Source: docs/wire/ingestion.md 1.1, for clients other than browsers. */
export function startPageRoute(options: StartPageOptions): Route {
  return {
    method: 'GET',
    path: '/',
    access: 'open',
    group: 'health',
    bodyLimitBytes: 1_024,
    handler: (request, reply) => {
      reply.header('vary', 'accept')
      if (!asksForHtml(request.headers.accept))
        return void reply.header('content-type', 'text/plain; charset=utf-8').send('capture')
      const base = options.addressBase(request)
      // Below a path of a site there are no screens: their addresses begin at the root.
      if (options.hasScreens && (!URL.canParse(base) || new URL(base).pathname === '/'))
        return void reply.code(302).header('location', '/ui/').send()
      reply
        .headers({
          'content-type': 'text/html; charset=utf-8',
          'content-security-policy': contentSecurityPolicy,
          'x-content-type-options': 'nosniff',
          'referrer-policy': 'no-referrer',
          // The page contains the address under which it was requested.
          'cache-control': 'no-store',
        })
        .send(renderStartPage(options, toPrintableAddress(base) ?? 'https://pennon.example'))
    },
  }
}

/** Whether `Accept` names HTML: programs other than browsers accept any type. */
function asksForHtml(accept = ''): boolean {
  return accept.split(',').some(range => htmlRange.test(range))
}

/** Matches `text/html` in an `Accept` header, unless it is excluded with `q=0`. */
const htmlRange = /^\s*text\/html\s*(;(?!\s*q=0(\.0*)?\s*$)|$)/i

/** Null when the address is not absolute or has characters that are unsafe in a page. */
function toPrintableAddress(base: string): string | null {
  return /^https?:\/\/[\w.:[\]/~-]+$/.test(base) ? base : null
}

const style = `
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 46rem; padding: 2rem 1rem; }
h1 { font-size: 1.75rem; margin: 0; }
h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; }
pre { border: 1px solid; border-radius: .4rem; overflow-x: auto; padding: .75rem 1rem; }
pre:focus-visible, a:focus-visible { outline: 3px solid; outline-offset: 2px; }
code { font: .9rem/1.5 ui-monospace, monospace; }
dt { font-weight: 600; margin-top: .5rem; }
dd { margin: 0; }
footer { border-top: 1px solid; margin-top: 2rem; padding-top: 1rem; }
`

const contentSecurityPolicy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
  // Allows the page's empty icon; without an icon, a browser would request one.
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

function renderStartPage({ version, hasScreens }: StartPageOptions, address: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Pennon</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<header>
<h1>Pennon</h1>
<p>Feature flags and event ingestion over PostHog’s wire protocol. Version ${version}.</p>
</header>
<main>
<h2>Point an SDK here</h2>
<p>Any PostHog SDK works unchanged. Set its host to the URL of this page, and its key to the project API key
(<code>phc_…</code>).</p>
<h3 id="node">A Node.js program</h3>
<pre tabindex="0" role="region" aria-labelledby="node"><code>// npm install posthog-node
import { PostHog } from "posthog-node"
const posthog = new PostHog("phc_…", { host: "${address}" })</code></pre>
<h3 id="web">A web page</h3>
<pre tabindex="0" role="region" aria-labelledby="web"><code>&lt;script
  src="${address}/static/loader.js"
  data-project-token="phc_…"
  data-api-host="${address}"
&gt;&lt;/script&gt;</code></pre>
<h2>Health</h2>
<dl>
<dt><a href="_readiness">_readiness</a></dt><dd>Whether flags, capture and processing are working.</dd>
<dt><a href="_liveness">_liveness</a></dt><dd>Whether the process responds.</dd>
</dl>
</main>
<footer>
<p>${hasScreens ? 'The screens need a host name or a port of their own, not a path of a site.' : 'The screens and the private API are on another port, which is not meant for the public.'}</p>
</footer>
</body>
</html>
`
}
