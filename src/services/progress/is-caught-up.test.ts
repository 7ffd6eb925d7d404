import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type CaughtUpDeps, isCaughtUp } from './is-caught-up.ts'

const nowMs = 100_000
const startedAtMs = 50_000

/** @param waiting by stream and offset, when the first unprocessed record was appended. */
function caughtUp(
  waiting: Record<string, number>,
  over: Partial<CaughtUpDeps> = {},
  deferredFrom: number | null = null,
) {
  const deps = {
    log: {
      listStreams: async () => [{ stream: 'main' }, { stream: 'historical' }],
      readStreamStatus: async (stream: string, offset: number) => ({
        endOffset: 20,
        appendedAtMs: waiting[`${stream} ${offset}`] ?? null,
      }),
    },
    positions: {
      findLogPosition: async () => ({ offset: 10 }),
      findDeferral: async () =>
        deferredFrom === null ? null : { offset: deferredFrom, projects: [{ projectId: 7, fromOffset: deferredFrom }] },
    },
    clock: { nowMs: () => nowMs },
    startedAtMs,
    isProcessing: () => true,
    ...over,
  } as unknown as CaughtUpDeps
  return isCaughtUp(deps, 7)
}

describe('isCaughtUp', () => {
  it('is true for an empty log, and while events wait no longer than usual', async () => {
    assert.equal(await caughtUp({}), true)
    assert.equal(await caughtUp({ 'main 10': nowMs - 1_500, 'historical 10': nowMs - 100 }), true)
  })

  it('is false while events wait longer than usual, or events accepted before the start wait', async () => {
    assert.equal(await caughtUp({ 'main 10': nowMs - 2_500 }), false)
    assert.equal(await caughtUp({ 'historical 10': nowMs - 60_000 }), false)
    const justStarted = { startedAtMs: nowMs - 300 }
    assert.equal(await caughtUp({ 'main 10': nowMs - 400 }, justStarted), false)
    assert.equal(await caughtUp({ 'main 10': nowMs - 200 }, justStarted), true)
    assert.equal(await caughtUp({ 'main 10': nowMs - 200 }, { startedAtMs: nowMs + 3_600_000 }), true)
  })

  it('is false while events of a deferred project wait, and while the worker is not processing', async () => {
    assert.equal(await caughtUp({ 'main 4': nowMs - 30_000 }, {}, 4), false)
    assert.equal(await caughtUp({ 'main 4': nowMs - 30_000 }), true)
    assert.equal(await caughtUp({}, { isProcessing: () => false }), false)
  })
})
