// The configurations of docs/operating/proxies.md, unchanged except for ports, in front of a real instance.

import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { startPennon, testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { tempDir } from '../support/temp-dir.ts'

const page = readFileSync('docs/operating/proxies.md', 'utf8')

function configOf(language: string): string {
  return new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(page)![1]!
}

/** Replaces texts, and fails if one is missing. */
function replaceAllOf(text: string, replacements: Readonly<Record<string, string>>): string {
  return Object.entries(replacements).reduce((done, [from, to]) => {
    assert.ok(done.includes(from), `${from} is not in the configuration`)
    return done.replaceAll(from, to)
  }, text)
}

interface Proxy {
  readonly name: string
  /** The command that runs it in the foreground. @param folder reserved for it. */
  command(folder: string, port: number, pennonPort: number): readonly string[]
}

const proxies: readonly Proxy[] = [
  {
    name: 'nginx',
    command: (folder, port, pennonPort) => {
      const temps = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
      const own = replaceAllOf(configOf('nginx'), {
        'listen 80;': `listen 127.0.0.1:${port};`,
        ':8000': `:${pennonPort}`,
      })
      // Otherwise its workers run as nobody, without access to the parent folder.
      const asRoot = process.getuid?.() === 0 ? 'user root; ' : ''
      const around = [
        `${asRoot}daemon off; pid ${folder}/pid; error_log stderr; events {}`,
        `http { access_log off; ${temps.map(name => `${name}_temp_path ${folder}/${name};`).join(' ')}`,
      ]
      writeFileSync(join(folder, 'nginx.conf'), `${around.join('\n')}\n${own}\n}\n`)
      return ['nginx', '-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr']
    },
  },
  {
    name: 'haproxy',
    command: (folder, port, pennonPort) => {
      const own = replaceAllOf(configOf('haproxy'), {
        'bind :80\n': `bind 127.0.0.1:${port}\n`,
        ':8000': `:${pennonPort}`,
      })
      writeFileSync(join(folder, 'haproxy.cfg'), own)
      return ['haproxy', '-db', '-f', join(folder, 'haproxy.cfg')]
    },
  },
  {
    name: 'caddy',
    command: (folder, port, pennonPort) => {
      const own = replaceAllOf(configOf('caddyfile'), {
        'flags.example {': `http://127.0.0.1:${port} {`,
        ':8000': `:${pennonPort}`,
      })
      writeFileSync(join(folder, 'Caddyfile'), `{\n\tadmin off\n}\n${own}`)
      return ['caddy', 'run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')]
    },
  },
]

interface Page {
  readonly next: string | null
  readonly results: readonly { readonly properties: Record<string, unknown> }[]
}

const pennon = startedForTests(startPennon)

for (const proxy of proxies)
  describe(`${proxy.name} configured as in docs/operating/proxies.md`, () => {
    const folder = tempDir({ after })
    let child: ChildProcess
    let url: string
    let complaints = ''

    before(async () => {
      const port = await freePort()
      const [program, ...args] = proxy.command(folder, port, pennon.port)
      mkdirSync(join(folder, 'home'))
      child = spawn(program!, args, {
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { PATH: `${process.env.PATH}:/usr/sbin`, HOME: join(folder, 'home') },
      })
      child.on('error', cause => {
        complaints += String(cause)
      })
      child.stderr!.on('data', text => {
        complaints += text
      })
      url = `http://127.0.0.1:${port}`
      await eventually(async () => (await fetch(`${url}/_readiness`)).status === 200, {
        what: `${proxy.name} (${complaints})`,
      })
    })
    after(async () => {
      if (child.exitCode !== null || child.pid === undefined) return
      child.kill('SIGTERM')
      await new Promise(resolve => child.once('exit', resolve))
    })

    const post = (path: string, body: string | Buffer<ArrayBuffer>, headers: Record<string, string> = {}) =>
      fetch(url + path, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body })
    const sent = (event: string, properties: object = {}) => ({
      api_key: testProjectKey,
      event,
      distinct_id: 'ada',
      properties,
    })
    const stored = async (event: string) => {
      await pennon.caughtUp()
      const found: Record<string, unknown>[] = []
      // A page ends early when it has become large.
      for (
        let path: string | null = `/api/projects/@current/events/?event=${encodeURIComponent(event)}`;
        path !== null;
      ) {
        const page: Page = await pennon.api('GET', path)
        found.push(...page.results.map(({ properties }) => properties))
        path = page.next === null ? null : page.next.replace(/^https?:\/\/[^/]+/, '')
      }
      return found
    }

    it('bodies of 20 MiB are accepted, and compressed ones pass unchanged', async () => {
      const event = `large ${proxy.name}`
      const filler = 'x'.repeat(900_000)
      const batch = Array.from({ length: 23 }, () => ({ event, distinct_id: 'ada', properties: { filler } }))
      const large = JSON.stringify({ api_key: testProjectKey, batch: batch.slice(0, 22) })
      assert.ok(large.length > 18 * 1024 * 1024 && large.length < 20 * 1024 * 1024)
      assert.equal((await post('/batch/', large)).status, 200)
      const gzip = gzipSync(JSON.stringify(sent(event)))
      assert.equal((await post('/e/', gzip, { 'content-encoding': 'gzip' })).status, 200)
      assert.equal((await stored(event)).length, 23)
      const tooLarge = await post('/batch/', 'x'.repeat(21 * 1024 * 1024))
      assert.equal(tooLarge.status, 413)
      assert.match(tooLarge.headers.get('content-type')!, /json/, 'Pennon’s own answer')
    })

    it("Pennon works under a path of a site, and sees the client's real address whatever headers it sends", async () => {
      const event = `prefixed ${proxy.name}`
      const headers = { 'x-forwarded-for': '203.0.113.7' }
      assert.equal((await post('/ingest/e/', JSON.stringify(sent(event)), headers)).status, 200)
      assert.deepEqual(
        (await stored(event)).map(({ $ip }) => $ip),
        ['127.0.0.1'],
      )
      const flags = await post('/ingest/flags/?v=2', JSON.stringify({ token: testProjectKey, distinct_id: 'ada' }))
      assert.equal(flags.status, 200)
      const script = await fetch(`${url}/ingest/static/array.js`)
      assert.equal(script.status, 200)
      assert.ok((await script.text()).length > 10_000)
      const startPage = await fetch(`${url}/ingest/`, { headers: { accept: 'text/html' } })
      assert.match(await startPage.text(), new RegExp(`host: "${url}/ingest"`), 'with the port and the path')
      const metrics = await fetch(`${url}/metrics`)
      assert.equal(metrics.status, 401, 'a proxy on loopback does not make clients operators')
    })

    it('slow streams pass unbuffered, and each request has an id that both the proxy and Pennon log', async () => {
      const response = await fetch(`${url}/ofrep/v1/events?key=${testProjectKey}`, {
        headers: { authorization: `Bearer ${testProjectKey}` },
      })
      assert.equal(response.headers.get('content-type'), 'text/event-stream')
      assert.match(response.headers.get('x-request-id')!, /^[0-9a-f-]{32,36}$/)
      const reader = response.body!.getReader()
      const live = await fetch(`${url}/api/projects/@current/events/live/`, {
        headers: { authorization: `Bearer ${testPersonalKey}` },
      })
      const messages = live.body!.getReader()
      let text = ''
      const until = async (wanted: RegExp) => {
        while (!wanted.test(text)) {
          const { value, done } = await messages.read()
          assert.ok(!done, text)
          text += new TextDecoder().decode(value)
        }
      }
      await until(/event: ready/)
      const event = `live ${proxy.name}`
      assert.equal((await post('/e/', JSON.stringify(sent(event)))).status, 200)
      await until(new RegExp(event))
      assert.ok((await reader.read()).value!.length > 0)
      await Promise.all([reader.cancel(), messages.cancel()])
    })
  })

it('every proxy on the documentation page is tested', () => {
  const languages = [...page.matchAll(/```(\w+)\n/g)].map(match => match[1])
  assert.deepEqual(languages, ['nginx', 'haproxy', 'caddyfile'])
  for (const program of ['nginx', 'haproxy', 'caddy'])
    execFileSync('sh', ['-c', `PATH=$PATH:/usr/sbin command -v ${program}`], { stdio: 'ignore' })
})
