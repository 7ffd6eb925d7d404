import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ChunkStore } from '#ports/state/chunk-store.ts'
import type { Deferral, FollowedLog } from '#ports/state/worker-state.ts'
import { bindLog, decideWhichLogToFollow, findLogMismatch, LogMismatchError, restrictClaimsToLog } from './bind-log.ts'

const followed = (over: Partial<FollowedLog> = {}): FollowedLog => ({
  id: 'a',
  place: 'here:/a',
  formerId: null,
  begunAt: '{"main":0,"historical":0}',
  ...over,
})
const now = '{"main":50,"historical":0}'

describe('decideWhichLogToFollow', () => {
  const rows: [string, Parameters<typeof decideWhichLogToFollow>, ReturnType<typeof decideWhichLogToFollow>][] = [
    [
      'continues with the log that the state follows',
      [{ id: 'a', hasSegments: true }, followed(), now],
      { kind: 'go_on' },
    ],
    ['begins an empty log', [{ id: null, hasSegments: false }, null, now], { kind: 'follow', id: null }],
    [
      'begins a log in an empty folder although the state followed another log',
      [{ id: null, hasSegments: false }, followed(), now],
      { kind: 'follow', id: null },
    ],
    [
      'gives a new id to an empty log that another start has begun',
      [{ id: 'b', hasSegments: false }, null, now],
      { kind: 'follow', id: null },
    ],
    [
      'keeps the id of an empty log that the state follows',
      [{ id: 'a', hasSegments: false }, followed(), now],
      { kind: 'go_on' },
    ],
    [
      'gives a new id to the former log while it is empty',
      [{ id: 'a', hasSegments: false }, followed({ id: 'b', formerId: 'a', begunAt: now }), now],
      { kind: 'follow', id: null },
    ],
    ['refuses a log that another state follows', [{ id: 'b', hasSegments: true }, followed(), now], { kind: 'refuse' }],
    [
      'refuses a log with an id if the state follows no log',
      [{ id: 'b', hasSegments: true }, null, now],
      { kind: 'refuse' },
    ],
    [
      'refuses a log that lost its id, whatever the state followed',
      [{ id: null, hasSegments: true }, followed({ begunAt: now }), now],
      { kind: 'refuse' },
    ],
    [
      'returns to the former log if nothing of the new log was processed',
      [{ id: 'a', hasSegments: true }, followed({ id: 'b', formerId: 'a', begunAt: now }), now],
      { kind: 'follow', id: 'a' },
    ],
    [
      'does not return to the former log once something of the new log was processed',
      [{ id: 'a', hasSegments: true }, followed({ id: 'b', formerId: 'a' }), now],
      { kind: 'refuse' },
    ],
  ]
  for (const [what, given, expected] of rows)
    it(what, () => assert.deepEqual(decideWhichLogToFollow(...given), expected))
})

describe('bindLog', () => {
  function bound(
    log: { id: string | null; hasSegments: boolean },
    known: FollowedLog | null,
    statePlace: string | null,
    deferral: Deferral | null = null,
  ) {
    const done: string[] = []
    const result = bindLog({
      management: {
        findFollowedLog: async () => known,
        findDeferral: async stream => (stream === 'main' ? deferral : null),
        findLogPosition: async stream => ({ offset: stream === 'main' ? 50 : 0, committedAtMs: null }),
        followLog: async next => void done.push(`state ${JSON.stringify(next)}`),
      },
      log: {
        ...log,
        streams: ['main', 'historical'],
        writeId: id => void done.push(`folder ${id}`),
      },
      folder: '/data/log',
      host: 'here',
      statePlace,
      newUuid: () => 'new',
      warn: line => void done.push(`warned: ${line}`),
    })
    return { done, result }
  }

  it('gives an empty log an id before recording it in the state, and reports the log that the state used before', async () => {
    const { done, result } = bound(
      { id: null, hasSegments: false },
      followed({ place: 'there:/old' }),
      'PostgreSQL at db',
    )
    assert.ok((await result).ok)
    assert.equal(done[0], 'folder new')
    assert.match(done[1]!, /^state .*"id":"new","place":"here:\/data\/log","formerId":"a".*main\\":50/)
    assert.match(done[2]!, /there:\/old\. Unprocessed events/)
    assert.equal(done.length, 3)
  })

  it('also records the position of a stream’s second cursor', async () => {
    const deferral = { offset: 30, projects: [{ projectId: 2, fromOffset: 20 }] }
    const { done, result } = bound({ id: null, hasSegments: false }, followed(), 'PostgreSQL at db', deferral)
    assert.ok((await result).ok)
    assert.match(done[1]!, /main\\":50.*main\.deferred\\":30/)
  })

  it('gives an empty log that already has an id a new id, so that no other state uses it', async () => {
    const { done, result } = bound({ id: 'b', hasSegments: false }, null, 'PostgreSQL at db')
    assert.ok((await result).ok)
    assert.equal(done[0], 'folder new')
    assert.match(done[1]!, /^state .*"id":"new"/)
    assert.equal(done.length, 2)
  })

  it('changes nothing when it refuses, and names the folder, the state and a remedy', async () => {
    const { done, result } = bound({ id: 'b', hasSegments: true }, followed(), 'PostgreSQL at db')
    const refused = await result
    assert.ok(!refused.ok)
    assert.match(refused.error, /^The log in \/data\/log .*PostgreSQL at db follows the log in here:\/a.*PENNON_DATA/)
    assert.doesNotMatch(refused.error, /\n/)
    assert.deepEqual(done, [])
  })
})

describe('findLogMismatch', () => {
  const log = {
    id: 'a',
    streams: ['main', 'historical'],
    endOffset: async (stream: string) => (stream === 'main' ? 50 : 7),
  }
  const found = (over: object) => ({ followedLogId: 'a', positions: new Map([['main', 50]]), ...over })

  it('accepts the state as the instance left it, and an older copy of that state', async () => {
    assert.equal(await findLogMismatch(found({}), log), null)
    assert.equal(await findLogMismatch(found({ positions: new Map([['main', 3]]) }), log), null)
    assert.equal(await findLogMismatch(found({ positions: new Map() }), log), null)
  })

  it('reports a state that belongs to another log, or is ahead of the end of this log', async () => {
    assert.match(String(await findLogMismatch(found({ followedLogId: 'b' }), log)), /follows another log/)
    const ahead = found({ positions: new Map([['historical', 8]]) })
    assert.match(String(await findLogMismatch(ahead, log)), /ahead of the log .*historical/)
  })
})

describe('restrictClaimsToLog', () => {
  function chunks(claimed: string[]) {
    const claimPosition = async (stream: string) => {
      claimed.push(stream)
      return { offset: 7 }
    }
    return { claimPosition } as unknown as ChunkStore
  }

  it('claims a stream of the log that the state belongs to', async () => {
    const store = restrictClaimsToLog('a', chunks([]), { findFollowedLog: async () => followed() })
    assert.deepEqual(await store.claimPosition('main', 'w'), { offset: 7 })
  })

  it('refuses a worker on another log before it takes the stream from its owner', async () => {
    const claimed: string[] = []
    const store = restrictClaimsToLog('b', chunks(claimed), { findFollowedLog: async () => followed() })
    await assert.rejects(store.claimPosition('main', 'w'), LogMismatchError)
    assert.deepEqual(claimed, [])
  })

  it('checks again after the claim, since another log may be bound in between', async () => {
    const claimed: string[] = []
    const store = restrictClaimsToLog('a', chunks(claimed), {
      findFollowedLog: async () => followed({ id: claimed.length === 0 ? 'a' : 'b' }),
    })
    await assert.rejects(store.claimPosition('main', 'w'), LogMismatchError)
    assert.deepEqual(claimed, ['main'])
  })
})
