import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ChunkPace } from './chunk-pace.ts'
import { type ProcessorLimits, processorLimits } from './processor-limits.ts'
import type { StreamCursor } from './stream-cursors.ts'

const live: StreamCursor = { name: 'main', stream: 'main', traffic: 'live', takesDeferred: false }
const imports: StreamCursor = { name: 'historical', stream: 'historical', traffic: 'import', takesDeferred: false }

/** Every chunk is too slow beside live events, and fast enough without them. */
const limits: ProcessorLimits = { ...processorLimits, importChunkMs: 0, loneImportChunkMs: Number.MAX_VALUE }

function runFullChunk(pace: ChunkPace, cursor: StreamCursor): void {
  const recordCount = pace.recordCountMax(cursor)
  const chunk = pace.begin(cursor, recordCount)
  chunk.noteSize({ rowCount: 1, textBytes: 1 })
  chunk.noteCommitted(recordCount)
  pace.adapt(chunk)
}

describe('chunks of imported events', () => {
  it('grow while no live events arrive, and shrink as soon as live events arrive', () => {
    const pace = new ChunkPace(limits)
    const first = pace.recordCountMax(imports)
    runFullChunk(pace, imports)
    const alone = pace.recordCountMax(imports)
    assert.ok(alone > first, `${first}, then ${alone}`)
    runFullChunk(pace, live)
    runFullChunk(pace, imports)
    assert.ok(pace.recordCountMax(imports) < alone)
  })

  it('grow again some time after the last live chunk', () => {
    const pace = new ChunkPace({ ...limits, loneAfterMs: -1 })
    runFullChunk(pace, live)
    const before = pace.recordCountMax(imports)
    runFullChunk(pace, imports)
    assert.ok(pace.recordCountMax(imports) > before)
  })

  it('grow while the live stream is empty', () => {
    const pace = new ChunkPace(limits)
    pace.adapt(pace.begin(live, 0))
    const before = pace.recordCountMax(imports)
    runFullChunk(pace, imports)
    assert.ok(pace.recordCountMax(imports) > before)
  })

  it('may take twice as long as a chunk of a few live events, even if that exceeds their own time limit', t => {
    let nowMs = 1_000
    t.mock.method(performance, 'now', () => nowMs)
    const pace = new ChunkPace(limits)
    const slow = pace.begin(live, 1)
    nowMs += 5
    slow.noteCommitted(1)
    pace.adapt(slow)
    const before = pace.recordCountMax(imports)
    runFullChunk(pace, imports)
    assert.ok(pace.recordCountMax(imports) > before)
  })
})
