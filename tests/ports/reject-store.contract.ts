// The contract of every store of rejects; for the real one it runs as part of the event store's contract.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { RejectedEvent } from '#core/events/stored-event.ts'
import { type EventWriter, noEventRows } from '#ports/events/event-writer.ts'
import type { RejectedFilter, RejectStore } from '#ports/events/reject-store.ts'

const startMs = Date.now() - 3_600_000

export function aReject(projectId: number, n: number, over: Partial<RejectedEvent> = {}): RejectedEvent {
  return {
    rejectId: `00000000-0000-5000-8000-${String(projectId * 10_000 + n).padStart(12, '0')}`,
    projectId,
    reason: 'timestamp_invalid',
    field: 'timestamp',
    lane: 'historical',
    importJobId: 1,
    uuid: 'not even a uuid',
    event: 'e',
    distinctId: 'd',
    receivedAtMs: startMs + n,
    body: '{"\\u0000":"\\ud800"}',
    source: null,
    ...over,
  }
}

/** Call inside `describe`. */
export function rejectStoreContract(
  opened: () => RejectStore & Pick<EventWriter, 'insert'>,
  newProject: () => number,
): void {
  const insert = (...rejected: readonly RejectedEvent[]) => opened().insert({ ...noEventRows, rejected })
  const listed = async (filter: RejectedFilter, limit = 1_000) => {
    const { rejected } = await opened().listRejected({ ...filter, limit })
    return rejected
  }
  const numbers = (rejects: readonly RejectedEvent[]) => rejects.map(({ receivedAtMs }) => receivedAtMs - startMs)

  it('lists rejects newest first, each once, as they were stored', async () => {
    const projectId = newProject()
    const source = {
      kind: 'item',
      isTruncated: true,
      protocol: 'v1',
      engage: true,
      ip: '203.0.113.7',
      sentAtMs: 7,
      personProcessingForcedOff: true,
    } as const
    const rejects = [aReject(projectId, 1), aReject(projectId, 2, { source }), aReject(projectId, 3, { reason: 'x' })]
    await insert(...rejects)
    await insert(...rejects)
    await insert(aReject(newProject(), 4))
    assert.deepEqual(
      await listed({ projectId }),
      rejects.toReversed().map(reject => ({ ...reject, replayedAtMs: null })),
    )
    assert.deepEqual(numbers(await listed({ projectId, oldestFirst: true })), [1, 2, 3])
    assert.equal(await opened().countRejected({ projectId }), 3)
  })

  it('filters rejects by every field and by all fields combined', async () => {
    const projectId = newProject()
    await insert(
      aReject(projectId, 1, { reason: 'a', event: "it's", distinctId: 'Zoë', lane: 'main' }),
      aReject(projectId, 2, { reason: 'b', field: 'batch.12.uuid', uuid: 'u-2', body: '{"plan":"Größe"}' }),
      aReject(projectId, 3, { reason: 'b', field: 'uuid', body: 'a%b_c\\d' }),
    )
    const cases: readonly (readonly [filter: Omit<RejectedFilter, 'projectId'>, found: readonly number[]])[] = [
      [{ reason: 'b' }, [3, 2]],
      [{ field: 'uuid' }, [3, 2]],
      [{ field: 'batch.12.uuid' }, [2]],
      [{ field: 'uid' }, []],
      [{ event: "it's" }, [1]],
      [{ distinctId: 'Zoë' }, [1]],
      [{ uuid: 'u-2' }, [2]],
      [{ lane: 'main' }, [1]],
      [{ search: 'GRÖSSE' }, []],
      [{ search: 'größe' }, [2]],
      [{ search: 'GRÖßE' }, [2]],
      [{ search: 'a%b_c\\d' }, [3]],
      [{ search: 'a.b' }, []],
      [{ afterMs: startMs + 1 }, [3, 2]],
      [{ beforeMs: startMs + 3 }, [2, 1]],
      [{ afterMs: startMs + 1, beforeMs: startMs + 3 }, [2]],
      [{ ids: [aReject(projectId, 3).rejectId, 'no such'] }, [3]],
      [{ ids: [] }, []],
      [{ reason: 'b', search: 'plan' }, [2]],
    ]
    for (const [filter, found] of cases) {
      assert.deepEqual(numbers(await listed({ projectId, ...filter })), found, JSON.stringify(filter))
      assert.equal(await opened().countRejected({ projectId, ...filter }), found.length, JSON.stringify(filter))
    }
  })

  it('pages through rejects without skipping or repeating any, in both directions, even within one millisecond', async () => {
    const projectId = newProject()
    const rejects = Array.from({ length: 7 }, (_, n) =>
      aReject(projectId, n, { receivedAtMs: startMs + Math.floor(n / 3) }),
    )
    await insert(...rejects)
    for (const oldestFirst of [false, true]) {
      const seen: string[] = []
      let beyond: RejectedFilter['beyond']
      for (let page = 0; page < 10; page++) {
        const answer = await opened().listRejected({ projectId, oldestFirst, limit: 2, ...(beyond && { beyond }) })
        seen.push(...answer.rejected.map(({ rejectId }) => rejectId))
        if (page === 1) await insert(aReject(projectId, 99, { receivedAtMs: startMs + (oldestFirst ? -5 : 5_000) }))
        if (answer.next === null) break
        beyond = answer.next
        assert.equal(
          await opened().countRejected({ projectId, oldestFirst, beyond }),
          (await listed({ projectId, oldestFirst, beyond })).length,
        )
      }
      const ids = rejects.map(({ rejectId }) => rejectId)
      if (oldestFirst)
        assert.deepEqual(
          seen.filter(id => ids.includes(id)),
          ids,
        )
      else assert.deepEqual(seen, ids.toReversed())
    }
  })

  it('ends a page of large bodies early, and `next` continues after it', async () => {
    const projectId = newProject()
    const body = 'x'.repeat(65_536)
    await insert(...Array.from({ length: 150 }, (_, n) => aReject(projectId, n, { body })))
    const first = await opened().listRejected({ projectId, limit: 150 })
    assert.ok(first.rejected.length > 100 && first.rejected.length < 150, String(first.rejected.length))
    const second = await opened().listRejected({ projectId, limit: 150, beyond: first.next! })
    assert.deepEqual(
      numbers([...first.rejected, ...second.rejected]),
      Array.from({ length: 150 }, (_, n) => 149 - n),
    )
    assert.equal(second.next, null)
  })

  it('remembers which rejects were replayed, even when they are written again', async () => {
    const projectId = newProject()
    const rejects = [aReject(projectId, 1), aReject(projectId, 2)]
    await insert(...rejects)
    const { rejectId, receivedAtMs } = rejects[0]!
    await opened().markReplayed([{ projectId, rejectId, receivedAtMs, replayedAtMs: 1_800_000_000_000 }])
    await opened().markReplayed([{ projectId, rejectId, receivedAtMs, replayedAtMs: 1_800_000_000_001 }])
    await insert(...rejects)
    assert.deepEqual(
      (await listed({ projectId })).map(({ replayedAtMs }) => replayedAtMs),
      [null, 1_800_000_000_001],
    )
    assert.deepEqual(numbers(await listed({ projectId, replayed: true })), [1])
    assert.deepEqual(numbers(await listed({ projectId, replayed: false })), [2])
    await opened().markReplayed([])
  })
}
