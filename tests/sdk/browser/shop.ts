// The visited site: a separate server, so that Pennon is another origin. Its one page loads the library as the URL says
// and prints its flags and what it sends. One path prefix is forwarded to Pennon.

import { readFileSync } from 'node:fs'
import { createServer, request as forward, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'

export interface Shop {
  readonly url: string
  /** The URL of a page with this in its head. */
  page(head: string): string
  close(): Promise<void>
}

/** Packages of the library whose `dist` the shop serves by itself, as sites do that bundle it. */
const ownLibraries = ['posthog-js-1-57', 'posthog-js-1-116']

export async function startShop(pennonUrl: string): Promise<Shop> {
  const heads: string[] = []
  const server = createServer((incoming, answer) => {
    const path = incoming.url!.split('?', 1)[0]!
    if (path.startsWith('/ingest/')) return passOn(pennonUrl, incoming, answer)
    const head = /^\/page\/(\d+)$/.exec(path)
    if (head !== null) return send(answer, 'text/html; charset=utf-8', pageWith(heads[Number(head[1])]!))
    const library = ownLibraries.find(name => path === `/own/${name}.js`)
    if (library !== undefined) return send(answer, 'application/javascript', libraryOf(library))
    if (path === '/bye')
      return send(answer, 'text/html', '<!doctype html><link rel="icon" href="data:,"><title>Bye</title>')
    answer.writeHead(404).end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  // Another site as well as another origin: no cookie goes along by itself.
  const url = `http://shop.localhost:${(server.address() as AddressInfo).port}`
  return {
    url,
    page: head => `${url}/page/${heads.push(head) - 1}`,
    close: async () => {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

/**
 * The queue that PostHog's HTML snippet uses until the library has loaded, in its protocol: `_i` has the calls of
 * `init`, the array itself the others, and `__SV` marks it as such a queue.
 * @param src where the library is loaded from.
 * @param config of `posthog.init`, as JavaScript.
 */
export function snippet(src: string, token: string, config: string): string {
  return `<script>
(function (posthog) {
  if (posthog.__SV) return
  window.posthog = posthog
  posthog._i = []
  posthog.__SV = 1
  posthog.people = []
  ;${JSON.stringify(queuedMethods)}.forEach(function (name) {
    posthog[name] = function () { posthog.push([name].concat(Array.prototype.slice.call(arguments))) }
  })
  posthog.init = function (token, config) {
    posthog._i.push([token, config, 'posthog'])
    var script = document.createElement('script')
    script.async = true
    script.crossOrigin = 'anonymous'
    script.src = ${JSON.stringify(src)}
    document.head.appendChild(script)
  }
})(window.posthog || [])
posthog.init(${JSON.stringify(token)}, ${config})
</script>`
}

const queuedMethods = ['capture', 'identify', 'group', 'register', 'onFeatureFlags', 'reloadFeatureFlags']

function pageWith(head: string): string {
  return `<!doctype html>
<html>
<head>
<meta charset="utf-8"><title>A shop</title><link rel="icon" href="data:,">
<script>
window.notes = []
function noteEvent(event) {
  notes.push(event.event)
  var list = document.getElementById('events')
  if (list) list.textContent = notes.join('\\n')
  return event
}
</script>
<style>body { font: 15px/1.5 sans-serif; margin: 2rem } pre { background: #eee; padding: 1rem; white-space: pre-wrap }</style>
${head}
</head>
<body>
<h1>A shop</h1>
<div id="basket"><button id="buy" class="primary large" data-item="7">Buy now</button></div>
<h2>Flags</h2><pre id="flags">not there yet</pre>
<h2>Events</h2><pre id="events"></pre>
<script>
function show(id, text) { document.getElementById(id).textContent = text }
window.shown = {
  flagsLoaded: 0,
  values: function () { return window.posthog.featureFlags.getFlagVariants() },
}
posthog.onFeatureFlags(function () {
  shown.flagsLoaded++
  show('flags', Object.keys(shown.values()).sort().map(function (key) {
    return key + ': ' + shown.values()[key] + '  ' + (JSON.stringify(window.posthog.getFeatureFlagPayload(key)) || '')
  }).join('\\n'))
})
</script>
</body>
</html>`
}

function libraryOf(packageName: string): Buffer {
  return readFileSync(fileURLToPath(new URL('array.js', import.meta.resolve(packageName))))
}

/** Forwards as proxies do that hide the analytics' URL: removes the prefix and passes on the visitor's address. */
function passOn(pennonUrl: string, incoming: IncomingMessage, answer: ServerResponse): void {
  const target = new URL(pennonUrl)
  const { host, ...headers } = incoming.headers
  const outgoing = forward(
    {
      host: target.hostname,
      port: target.port,
      method: incoming.method,
      path: incoming.url!.slice('/ingest'.length),
      headers: { ...headers, 'x-forwarded-for': '203.0.113.9', 'x-forwarded-host': host },
    },
    response => {
      answer.writeHead(response.statusCode!, response.rawHeaders)
      response.pipe(answer)
    },
  )
  outgoing.on('error', () => answer.destroy())
  incoming.pipe(outgoing)
}

function send(answer: ServerResponse, contentType: string, body: string | Buffer): void {
  answer.writeHead(200, { 'content-type': contentType, 'cache-control': 'no-store' }).end(body)
}
