// Fetching files of a list of addresses from a real web server that breaks off, changes files, or knows no ranges.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { readFetchedParts } from '#importer/fetch/fetched-parts.ts'
import { fetchInto, rawFiles } from '../support/fetching.ts'
import { tempDir } from '../support/temp-dir.ts'

interface Site {
  readonly url: string
  readonly asked: { readonly method: string; readonly range: string | undefined; readonly path: string }[]
}

/** @param answer true when it has answered, otherwise the file is sent. */
async function aSite(
  t: TestContext,
  files: Map<string, Buffer>,
  answer: (request: IncomingMessage, response: ServerResponse) => boolean = () => false,
): Promise<Site> {
  const asked: Site['asked'] = []
  const server = createServer((request, response) => {
    const path = new URL(request.url!, 'http://site').pathname
    const { range } = request.headers
    asked.push({ method: request.method!, range, path })
    if (answer(request, response)) return
    const file = files.get(path)
    if (file === undefined) return void response.writeHead(404).end('no such file')
    const etag = `"${file.length}-${file.subarray(0, 4).toString('hex')}"`
    const from = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0)
    const part = file.subarray(from)
    response.writeHead(from === 0 ? 200 : 206, {
      etag,
      'content-length': part.length,
      ...(from === 0 ? {} : { 'content-range': `bytes ${from}-${file.length - 1}/${file.length}` }),
    })
    response.end(request.method === 'HEAD' ? undefined : part)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as { port: number }).port}`, asked }
}

function listOf(t: TestContext, lines: readonly string[]) {
  const folder = tempDir(t)
  const list = join(folder, 'list.txt')
  writeFileSync(list, lines.join('\n'))
  return { folder: join(folder, 'job'), config: { source: 'http', list } }
}

const host = (url: string) => encodeURIComponent(new URL(url).host)

describe('fetching a list of addresses', () => {
  it('brings each file, whatever signs its address, and asks for none twice', async t => {
    const site = await aSite(
      t,
      new Map([
        ['/a/x.jsonl', Buffer.from('{}\n')],
        ['/a/y.jsonl', Buffer.from('{"y":1}\n')],
      ]),
    )
    const lines = (signature: string) => [
      '# exports of May',
      `${site.url}/a/x.jsonl?X-Amz-Signature=${signature}&X-Amz-Date=1`,
      '',
      `${site.url}/a/y.jsonl?part=2&sig=${signature}`,
    ]
    const { folder, config } = listOf(t, lines('geheim1'))
    await fetchInto(folder, config)
    const names = rawFiles(folder)
    assert.equal(names[0], `${host(site.url)}/a/${names[0]!.split('/').at(-1)}`)
    assert.match(names.join(), /^[^,]*\/a\/[0-9a-f]{12}-y\.jsonl,[^,]*\/a\/x\.jsonl$/)
    writeFileSync(config.list, lines('geheim2').join('\n'))
    await fetchInto(folder, config)
    assert.equal(site.asked.filter(({ method }) => method === 'GET').length, 2)
    for (const name of readdirSync(folder).filter(file => file.startsWith('fetch.')))
      assert.doesNotMatch(readFileSync(join(folder, name), 'latin1'), /geheim/)
  })

  it('goes on where an answer broke off', async t => {
    const file = randomBytes(2_000_000)
    let breaksLeft = 3
    const site = await aSite(t, new Map([['/big', file]]), (request, response) => {
      if (request.method === 'HEAD' || breaksLeft-- <= 0) return false
      const from = Number(/\d+/.exec(request.headers.range ?? '0')![0])
      const headers = {
        etag: `"${file.length}-${file.subarray(0, 4).toString('hex')}"`,
        'content-length': file.length - from,
      }
      const range = { 'content-range': `bytes ${from}-${file.length - 1}/${file.length}` }
      response.writeHead(from === 0 ? 200 : 206, from === 0 ? headers : { ...headers, ...range })
      response.write(file.subarray(from, from + 500_000), () => setTimeout(() => response.destroy(), 50))
      return true
    })
    const { folder, config } = listOf(t, [`${site.url}/big`])
    await fetchInto(folder, config)
    assert.deepEqual(readFileSync(join(folder, readFetchedParts(folder)!.parts[0]!.object)), file)
    const ranges = site.asked.filter(({ method }) => method === 'GET').map(({ range }) => range)
    assert.deepEqual(ranges, [undefined, 'bytes=500000-', 'bytes=1000000-', 'bytes=1500000-'])
  })

  it('notices that a file changed on the way', async t => {
    const files = new Map([['/big', randomBytes(1_000_000)]])
    let isFirst = true
    const site = await aSite(t, files, (request, response) => {
      if (request.method === 'HEAD' || !isFirst) return false
      isFirst = false
      const file = files.get('/big')!
      const etag = `"${file.length}-${file.subarray(0, 4).toString('hex')}"`
      response.writeHead(200, { etag, 'content-length': file.length })
      response.write(file.subarray(0, 500_000), () => response.destroy())
      files.set('/big', randomBytes(1_000_000))
      return true
    })
    const { folder, config } = listOf(t, [`${site.url}/big`])
    await assert.rejects(fetchInto(folder, config), /\/big has changed since it was listed/)
    await fetchInto(folder, config)
    assert.deepEqual(readFileSync(join(folder, readFetchedParts(folder)!.parts[0]!.object)), files.get('/big'))
  })

  it('works with a server that knows neither HEAD nor ranges nor versions', async t => {
    const file = randomBytes(1_000_000)
    let breaksLeft = 2
    const site = await aSite(t, new Map(), (request, response) => {
      if (request.method === 'HEAD') response.writeHead(405).end()
      else if (breaksLeft-- > 0) {
        response.writeHead(200)
        response.write(file.subarray(0, 300_000), () => response.destroy())
      } else response.writeHead(200).end(file)
      return true
    })
    const { folder, config } = listOf(t, [`${site.url}/x`])
    await fetchInto(folder, config)
    assert.deepEqual(readFileSync(join(folder, readFetchedParts(folder)!.parts[0]!.object)), file)
  })

  it('sends the authorization to the address, and to no other that it leads to', async t => {
    const seen: (string | undefined)[] = []
    const other = await aSite(t, new Map([['/x', Buffer.from('{}')]]), request => {
      seen.push(request.headers.authorization)
      return false
    })
    const site = await aSite(t, new Map(), (request, response) => {
      seen.push(request.headers.authorization)
      response.writeHead(302, { location: `${other.url}/x` }).end()
      return true
    })
    const { folder, config } = listOf(t, [`${site.url}/x`])
    await fetchInto(folder, config, { env: { IMPORT_HTTP_AUTHORIZATION: 'Bearer geheim' } })
    assert.deepEqual(seen, ['Bearer geheim', undefined, 'Bearer geheim', undefined])
  })

  it('says which line is wrong, and which file is missing', async t => {
    const site = await aSite(t, new Map())
    for (const [lines, complaint] of [
      [['https://example.com/x', 'nonsense'], /Line 2 of .* is no http or https address/],
      [['https://user:word@example.com/x'], /Line 1 of .* has a password/],
      [['# nothing'], /has no addresses/],
      [[`${site.url}/none?sig=geheim`], /\/none answers 404: no such file/],
    ] as const) {
      const { folder, config } = listOf(t, lines)
      await assert.rejects(fetchInto(folder, config), complaint)
    }
  })
})
