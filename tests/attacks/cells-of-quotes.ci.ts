// CSV cells of only quotes, of which 20 MB pack into 20 KB: adding up the text piece by piece takes as much memory per
// quote as for fifty letters, and once ran an import out of memory.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { Worker } from 'node:worker_threads'
import { gzipSync } from 'node:zlib'

const heapMegabytesMax = 192
const pairs = 10_000_000

const read = `
  import(${JSON.stringify(import.meta.resolve('../../src/core/csv.ts'))}).then(({ splitCsvRow }) => {
    const { workerData, parentPort } = require('node:worker_threads')
    const { pair, hasEscapes } = workerData
    const cells = splitCsvRow('"' + pair.repeat(${pairs}) + '"', ',', Infinity, hasEscapes)
    parentPort.postMessage({ count: cells.length, length: cells[0].length, isRight: /^"+$/.test(cells[0]) })
  })`

describe('a CSV cell of 20 MB', () => {
  for (const [name, pair, hasEscapes] of [
    ['doubled quotes', '""', false],
    ['quotes after backslashes', String.raw`\"`, true],
  ] as const) {
    it(`is read in ${heapMegabytesMax} MiB when it consists of ${name}`, async t => {
      const thread = new Worker(read, {
        eval: true,
        workerData: { pair, hasEscapes },
        resourceLimits: { maxOldGenerationSizeMb: heapMegabytesMax },
      })
      t.after(() => thread.terminate())
      const [found] = (await once(thread, 'message')) as [unknown]
      const packed = gzipSync(pair.repeat(pairs)).length
      console.log(`${pairs} ${name}: ${packed} bytes of gzip, read in a heap of ${heapMegabytesMax} MiB`)
      assert.deepEqual(found, { count: 1, length: pairs, isRight: true })
    })
  }
})
