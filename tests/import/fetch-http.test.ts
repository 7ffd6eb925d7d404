// Fetching the files of a list of addresses from a real web server that drops connections, changes files, or does not
// support ranges.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { FetchStop } from '#importer/fetch/fetch-faults.ts'
import { readFetchedParts } from '#importer/fetch/fetch-state.ts'
import { fetchInto, rawFiles } from '../support/fetching.ts'
import { quickClock } from '../support/fixed-clock.ts'
import { serve } from '../support/local-server.ts'
import { tempDir } from '../support/temp-dir.ts'

interface Site {
  readonly url: string
  readonly asked: { readonly method: string; readonly range: string | undefined; readonly path: string }[]
}

/** @param answer returns true when it has answered; otherwise the file is sent. */
async function aSite(
  t: TestContext,
  files: Map<string, Buffer>,
  answer: (request: IncomingMessage, response: ServerResponse) => boolean = () => false,
): Promise<Site> {
  const asked: Site['asked'] = []
  const url = await serve(t, (request, response) => {
    const path = new URL(request.url!, 'http://site').pathname
    asked.push({ method: request.method!, range: request.headers.range, path })
    if (answer(request, response)) return
    const file = files.get(path)
    if (file === undefined) return void response.writeHead(404).end('no such file')
    const part = begin(file, request, response)
    response.end(request.method === 'HEAD' ? undefined : part)
  })
  return { url, asked }
}

/** Sends the head of an answer with the requested part of a file. @returns that part. */
function begin(file: Buffer, { headers: { range } }: IncomingMessage, response: ServerResponse): Buffer {
  const from = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0)
  response.writeHead(from === 0 ? 200 : 206, {
    etag: `"${file.length}-${file.subarray(0, 4).toString('hex')}"`,
    'content-length': file.length - from,
    ...(from > 0 && { 'content-range': `bytes ${from}-${file.length - 1}/${file.length}` }),
  })
  return file.subarray(from)
}

function listOf(t: TestContext, lines: readonly string[]) {
  const folder = tempDir(t)
  const list = join(folder, 'list.txt')
  writeFileSync(list, lines.join('\n'))
  return { folder: join(folder, 'job'), config: { source: 'http', list } }
}

function rangesOf({ asked }: Site) {
  return asked.filter(({ method }) => method === 'GET').map(({ range }) => range)
}

const host = (url: string) => encodeURIComponent(new URL(url).host)

describe('fetching a list of URLs', () => {
  it('each file is fetched once, whatever signature its URL carries', async t => {
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

  it('a broken download continues where it stopped', async t => {
    const file = randomBytes(2_000_000)
    let breaksLeft = 3
    const site = await aSite(t, new Map([['/big', file]]), (request, response) => {
      if (request.method === 'HEAD' || breaksLeft-- <= 0) return false
      response.write(begin(file, request, response).subarray(0, 500_000), () => request.socket.end())
      return true
    })
    const { folder, config } = listOf(t, [`${site.url}/big`])
    await fetchInto(folder, config)
    assert.deepEqual(readFileSync(join(folder, readFetchedParts(folder)!.parts[0]!.object)), file)
    const ranges = rangesOf(site)
    assert.equal(ranges[0], undefined)
    const starts = ranges.map(range => Number(/^bytes=(\d+)-$/.exec(range ?? 'bytes=0-')![1]))
    assert.equal(starts.length, 4)
    // The last bytes before a connection breaks may be lost.
    for (const [index, start] of starts.entries())
      if (index > 0) assert.ok(start > starts[index - 1]! && start <= starts[index - 1]! + 500_000, starts.join())
  })

  it('a file that changes during its download is noticed', async t => {
    const files = new Map([['/big', randomBytes(1_000_000)]])
    let isFirst = true
    const site = await aSite(t, files, (request, response) => {
      if (request.method === 'HEAD' || !isFirst) return false
      isFirst = false
      const file = begin(files.get('/big')!, request, response)
      response.write(file.subarray(0, 500_000), () => response.destroy())
      files.set('/big', randomBytes(1_000_000))
      return true
    })
    const { folder, config } = listOf(t, [`${site.url}/big`])
    await assert.rejects(fetchInto(folder, config), /\/big has changed since it was listed/)
    await fetchInto(folder, config)
    assert.deepEqual(readFileSync(join(folder, readFetchedParts(folder)!.parts[0]!.object)), files.get('/big'))
  })

  it('files are also fetched from servers without HEAD, ranges or versions', async t => {
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

  it('the authorization is sent to the listed URL, but not to redirect targets', async t => {
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

  it('an invalid line or a missing file is named in the error', async t => {
    const site = await aSite(t, new Map())
    for (const [lines, complaint] of [
      [['https://example.com/x', 'nonsense'], /Line 2 of .* is not an http or https URL/],
      [['https://user:word@example.com/x'], /Line 1 of .* has a password/],
      [['# nothing'], /has no addresses/],
      [[`${site.url}/none?sig=geheim`], /\/none answers 404: no such file/],
    ] as const) {
      const { folder, config } = listOf(t, lines)
      await assert.rejects(fetchInto(folder, config), complaint)
    }
  })

  it('fetched files whose URLs have expired stay, and only missing files are reported as failing', async t => {
    const files = new Map([['/a', Buffer.from('{"a":1}\n')]])
    let [isAGone, bStatus] = [false, 503]
    const site = await aSite(t, files, (request, response) => {
      if (request.url === '/a' ? !isAGone : bStatus === 200) return false
      const status = request.url === '/a' ? 410 : bStatus
      response.writeHead(request.method === 'HEAD' && status === 503 ? 405 : status).end('expired')
      return true
    })
    const { folder, config } = listOf(t, [`${site.url}/a`, `${site.url}/b`])
    const stop = new AbortController()
    const onProgress = ({ partsDone }: { partsDone: number }) => partsDone === 1 && stop.abort(new Error('stopped'))
    await assert.rejects(fetchInto(folder, config, { signal: stop.signal, onProgress }), /stopped/)
    ;[isAGone, bStatus] = [true, 404]
    await assert.rejects(fetchInto(folder, config), (error: Error) => {
      assert.match(error.message, /\/b answers 404: expired/)
      assert.doesNotMatch(error.message, /\/a/)
      return true
    })
    files.set('/b', Buffer.from('{"b":1}\n'))
    bStatus = 200
    assert.equal((await fetchInto(folder, config)).partsDone, 2)
    assert.equal(site.asked.filter(({ method, path }) => method === 'GET' && path === '/a').length, 1)
    // The version is still known, so a changed file at a new link is noticed.
    isAGone = false
    assert.equal((await fetchInto(folder, config)).partsDone, 2)
    files.set('/a', Buffer.from('{"a":12345}\n'))
    await assert.rejects(fetchInto(folder, config), /\/a has changed at the source/)
  })

  it('a URL removed from the list is skipped, fetched files stay, and the fetch can finish', async t => {
    const file = randomBytes(400_000)
    const files = new Map([
      ['/a', Buffer.from('{"a":1}\n')],
      ['/c', Buffer.from('{"c":1}\n')],
    ])
    const isHalfSent = Promise.withResolvers<void>()
    const site = await aSite(t, files, (request, response) => {
      if (request.method === 'HEAD' || !['/half', '/dead'].includes(request.url!)) return false
      if (request.url === '/dead') {
        void isHalfSent.promise.then(() => response.writeHead(404).end())
        return true
      }
      response.write(begin(file, request, response).subarray(0, 100_000), () => {
        request.socket.end()
        isHalfSent.resolve()
      })
      return true
    })
    const { folder, config } = listOf(t, [`${site.url}/a`, `${site.url}/dead`, `${site.url}/half`])
    await assert.rejects(fetchInto(folder, config), FetchStop)
    assert.deepEqual(rawFiles(folder), [`${host(site.url)}/a`, `${host(site.url)}/half.part`])
    // The address already fetched is removed from the list as well; its file stays.
    writeFileSync(config.list, `${site.url}/c\n`)
    const notices: string[] = []
    const { partsDone } = await fetchInto(folder, config, { onNotice: line => notices.push(line) })
    assert.deepEqual(notices, [
      `${host(site.url)}/dead is not in the list any more, so it is not fetched.`,
      `${host(site.url)}/half is not in the list any more, so it is not fetched.`,
    ])
    assert.equal(partsDone, 2)
    assert.deepEqual(rawFiles(folder), [`${host(site.url)}/a`, `${host(site.url)}/c`])
    assert.deepEqual([readFetchedParts(folder)!.isComplete, readFetchedParts(folder)!.partsWaiting], [true, 0])
  })

  it('each dead URL is reported after the running downloads have finished, without the HTML of its server', async t => {
    const file = randomBytes(300_000)
    const page = '<!DOCTYPE html><html><head><title>Not here</title></head><body><p>markup</p></body></html>'
    const asked = new Set<string>()
    const [allAsked, deadAnswered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const site = await aSite(t, new Map([['/slow', file]]), (request, response) => {
      const path = request.url!
      const isDead = path.startsWith('/dead')
      if (request.method === 'HEAD' && !isDead) return false
      if (request.method === 'GET' && asked.add(path).size === 3) allAsked.resolve()
      if (request.method === 'HEAD') response.writeHead(path === '/dead1' ? 404 : 410).end()
      else if (isDead)
        void allAsked.promise.then(() => {
          response.writeHead(path === '/dead1' ? 404 : 410, { 'content-type': 'text/html' }).end(page)
          setTimeout(deadAnswered.resolve, 100)
        })
      else {
        response.write(begin(file, request, response).subarray(0, 100_000))
        void deadAnswered.promise.then(() => response.end(file.subarray(100_000)))
      }
      return true
    })
    const { folder, config } = listOf(
      t,
      ['/dead1', '/slow', '/dead2'].map(path => `${site.url}${path}`),
    )
    await assert.rejects(fetchInto(folder, config), (error: Error) => {
      for (const [path, status] of [
        ['/dead1', 404],
        ['/dead2', 410],
      ])
        assert.ok(error.message.includes(`${site.url}${path} answers ${status}: Not here.`), error.message)
      assert.doesNotMatch(error.message, /[<>]|markup/)
      return true
    })
    assert.deepEqual(rawFiles(folder), [`${host(site.url)}/slow`])
    assert.deepEqual(readFileSync(join(folder, 'raw', rawFiles(folder)[0]!)), file)
  })
})

const mebibyte = 2 ** 20
const freedAfterMs = 300_000

/** A disk on which space becomes free five minutes after it was full. `otherBytes` are written by other processes. */
function aDisk(folder: string, freeBytes: number) {
  const clock = quickClock()
  const disk = { otherBytes: 0, usedBytesMax: 0 }
  const findSpaceProblem = (bytes: number) => {
    if (clock.sleptMs() >= freedAfterMs) return null
    const raw = existsSync(join(folder, 'raw')) ? rawFiles(folder) : []
    const usedBytes = raw.reduce((sum, name) => sum + statSync(join(folder, 'raw', name)).size, 0)
    disk.usedBytesMax = Math.max(disk.usedBytesMax, usedBytes)
    return usedBytes + disk.otherBytes + bytes <= freeBytes ? null : 'WARNING: no space'
  }
  return { clock, findSpaceProblem, disk }
}

describe('the disk reserve during a download', () => {
  const file = Buffer.alloc(40 * mebibyte)
  it('a download of unknown size leaves the reserve free, and restarts only when there is space', async t => {
    const site = await aSite(t, new Map(), ({ method }, response) => {
      if (method === 'HEAD') response.writeHead(405).end()
      else response.writeHead(200).end(file)
      return true
    })
    const { folder, config } = listOf(t, [`${site.url}/big`])
    const { clock, findSpaceProblem, disk } = aDisk(folder, 20 * mebibyte)
    const notices: string[] = []
    const onNotice = (line: string) => notices.push(line)
    const { partsDone, bytesDone } = await fetchInto(folder, config, { clock, findSpaceProblem, onNotice })
    assert.deepEqual([partsDone, bytesDone], [1, file.length])
    assert.ok(clock.sleptMs() >= freedAfterMs, `${clock.sleptMs()} ms`)
    assert.ok(disk.usedBytesMax > 15 * mebibyte && disk.usedBytesMax < 33 * mebibyte, `${disk.usedBytesMax}`)
    assert.deepEqual(notices, ['WARNING: no space'])
    assert.deepEqual(rangesOf(site), [undefined, undefined])
  })

  it('a download stops when other programs take the space, and later continues where it stopped', async t => {
    const site = await aSite(t, new Map([['/big', file]]))
    const { folder, config } = listOf(t, [`${site.url}/big`])
    const { clock, findSpaceProblem, disk } = aDisk(folder, file.length)
    const { partsDone, bytesDone } = await fetchInto(folder, config, {
      clock,
      findSpaceProblem: bytes => {
        // A check during the download asks only for the bytes that remain.
        if (bytes === 0) disk.otherBytes = 30 * mebibyte
        return findSpaceProblem(bytes)
      },
    })
    assert.deepEqual([partsDone, bytesDone], [1, file.length])
    assert.ok(clock.sleptMs() >= freedAfterMs, `${clock.sleptMs()} ms`)
    const ranges = rangesOf(site)
    assert.equal(ranges.length, 2)
    const from = Number(/^bytes=(\d+)-$/.exec(ranges[1]!)![1])
    assert.ok(from > 15 * mebibyte && from < 33 * mebibyte, `${from}`)
  })
})
