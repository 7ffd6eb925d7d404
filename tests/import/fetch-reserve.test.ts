// A fetch keeps the disk reserve free while it downloads the files of a list, whether their sizes are known or not.

import assert from 'node:assert/strict'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { fetchInto, rawFiles } from '../support/fetching.ts'
import { quickClock } from '../support/fixed-clock.ts'
import { addressOf } from '../support/local-server.ts'
import { tempDir } from '../support/temp-dir.ts'

const mebibyte = 2 ** 20
const fileBytes = 40 * mebibyte
const freedAfterMs = 300_000

/** One file, whose size is announced only if it `isKnown`. */
async function aFile(t: TestContext, isKnown: boolean) {
  const ranges: (string | undefined)[] = []
  const server = createServer((request, response) => {
    if (request.method === 'HEAD' && !isKnown) return void response.writeHead(405).end()
    const { range } = request.headers
    const from = Number(/\d+/.exec(range ?? '0')![0])
    const known = { etag: '"1"', 'content-length': fileBytes - from }
    response.writeHead(range === undefined ? 200 : 206, {
      ...(isKnown && known),
      ...(range !== undefined && { 'content-range': `bytes ${from}-${fileBytes - 1}/${fileBytes}` }),
    })
    if (request.method === 'HEAD') return void response.end()
    ranges.push(range)
    response.end(Buffer.alloc(fileBytes - from))
  })
  const folder = tempDir(t)
  const list = join(folder, 'list.txt')
  writeFileSync(list, `${await addressOf(t, server)}/big`)
  return { ranges, folder: join(folder, 'job'), config: { source: 'http', list } }
}

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
  it('a file of unknown size leaves the reserve free, and restarts only when there is space', async t => {
    const { ranges, folder, config } = await aFile(t, false)
    const { clock, findSpaceProblem, disk } = aDisk(folder, 20 * mebibyte)
    const notices: string[] = []
    const { partsDone, bytesDone } = await fetchInto(folder, config, {
      ...{ clock, findSpaceProblem },
      onNotice: line => notices.push(line),
    })
    assert.deepEqual([partsDone, bytesDone], [1, fileBytes])
    assert.ok(clock.sleptMs() >= freedAfterMs, `${clock.sleptMs()} ms`)
    assert.ok(disk.usedBytesMax > 15 * mebibyte && disk.usedBytesMax < 33 * mebibyte, `${disk.usedBytesMax}`)
    assert.deepEqual(notices, ['WARNING: no space'])
    assert.deepEqual(ranges, [undefined, undefined])
  })

  it('a download stops when others take the space, and later continues where it stopped', async t => {
    const { ranges, folder, config } = await aFile(t, true)
    const { clock, findSpaceProblem, disk } = aDisk(folder, fileBytes)
    const { partsDone, bytesDone } = await fetchInto(folder, config, {
      clock,
      findSpaceProblem: bytes => {
        // A check during the download asks only for the bytes that remain.
        if (bytes === 0) disk.otherBytes = 30 * mebibyte
        return findSpaceProblem(bytes)
      },
    })
    assert.deepEqual([partsDone, bytesDone], [1, fileBytes])
    assert.ok(clock.sleptMs() >= freedAfterMs, `${clock.sleptMs()} ms`)
    assert.equal(ranges.length, 2)
    const from = Number(/^bytes=(\d+)-$/.exec(ranges[1]!)![1])
    assert.ok(from > 15 * mebibyte && from < 33 * mebibyte, `${from}`)
  })
})
