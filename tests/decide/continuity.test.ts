// When rows of experience continuity are read and written, and what flags evaluate to when they cannot be.
// Source: docs/wire/evaluation.md 5.13.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { JsonObject } from '#core/json.ts'
import { PortError } from '#ports/port-error.ts'
import type { HashKeyAssignment, HashKeyRow } from '#ports/state/subject-store.ts'
import { type DecideServerOptions, startDecideServer } from '../support/decide-server.ts'

const continuity = { ensure_experience_continuity: true }
/** `user-1` is in, `user-2` is out, of a rollout of 50 % of `rollout-50`. Source: vectors I02 and I03. */
const flags: JsonObject[] = [
  { id: 1, key: 'rollout-50', ...continuity, filters: { groups: [{ rollout_percentage: 50 }] } },
  { id: 2, key: 'everybody', ...continuity, filters: { groups: [{ rollout_percentage: 100 }] } },
  { id: 3, key: 'plain', filters: { groups: [{ rollout_percentage: 100 }] } },
  {
    id: 4,
    key: 'of-group',
    ...continuity,
    filters: { aggregation_group_type_index: 0, groups: [{ rollout_percentage: 100 }] },
  },
]
const allKeys = ['rollout-50', 'everybody', 'of-group']
const request = { api_key: 'phc_test', distinct_id: 'user-2' }
const withAnon = { ...request, $anon_distinct_id: 'user-1' }

interface Store {
  readonly rows: Map<string, readonly HashKeyRow[]>
  readonly reads: string[]
  readonly writes: HashKeyAssignment[]
}

/** `user-2` is a person without rows, unless a test says otherwise. */
async function start(t: TestContext, options: Partial<DecideServerOptions> & { fails?: () => boolean } = {}) {
  const store: Store = { rows: new Map([['user-2', []]]), reads: [], writes: [] }
  const server = await startDecideServer(t, {
    flags,
    hashKeys: {
      findHashKeys(_projectId, distinctId) {
        store.reads.push(distinctId)
        return store.rows.get(distinctId) ?? null
      },
      async addMissingHashKeys(assignment) {
        store.writes.push(assignment)
        if (options.fails?.()) throw new PortError('state', 'timeout')
        const { distinctId, flagKeys, anonDistinctId } = assignment
        const kept = new Map([
          ...flagKeys.map(key => [key, anonDistinctId] as const),
          ...(store.rows.get(distinctId) ?? []),
        ])
        store.rows.set(distinctId, [...kept])
        return [...kept]
      },
    },
    ...options,
  })
  const values = async (body: JsonObject, query = '') => {
    const answer = await server.post(`/flags?v=1${query}`, body)
    assert.equal(answer.status, 200)
    return answer.json as { featureFlags: JsonObject; errorsWhileComputingFlags: boolean }
  }
  return { store, server, values }
}

describe('experience continuity', () => {
  it('writes rows at the first request with an anonymous id, and only reads at later ones', async t => {
    const { store, values } = await start(t)
    for (let count = 0; count < 3; count++)
      assert.equal((await values(withAnon)).featureFlags['rollout-50'], true, 'as user-1')
    assert.equal((await values(request)).featureFlags['rollout-50'], true, 'without the anonymous id too')
    const assignment = { projectId: 1, distinctId: 'user-2', anonDistinctId: 'user-1', flagKeys: allKeys }
    assert.deepEqual(store.writes, [assignment])
    assert.deepEqual(store.reads, ['user-2', 'user-1', 'user-2', 'user-1', 'user-2', 'user-1', 'user-2'])
  })

  it('writes rows for flags that have none, and answers with the stored rows', async t => {
    const { store, values } = await start(t)
    store.rows.set('user-2', [
      ['everybody', 'before'],
      ['gone', 'before'],
    ])
    await values(withAnon)
    assert.deepEqual(store.writes[0]?.flagKeys, ['rollout-50', 'of-group'])
  })

  it('reads the anonymous id from the person properties, where older SDKs send it', async t => {
    const { store, values } = await start(t)
    const body = { ...request, person_properties: { $anon_distinct_id: 'user-1' } }
    assert.equal((await values(body)).featureFlags['rollout-50'], true)
    assert.equal(store.writes.length, 1)
  })

  it('reads only once if both ids are the same', async t => {
    const { store, values } = await start(t)
    await values({ ...request, $anon_distinct_id: 'user-2' })
    assert.deepEqual(store.reads, ['user-2'])
  })

  it('writes nothing if neither id has a person, and hashes the anonymous id', async t => {
    const { store, values } = await start(t)
    assert.equal((await values({ ...withAnon, distinct_id: 'new' })).featureFlags['rollout-50'], true)
    assert.deepEqual(store.writes, [])
  })

  it('writes rows if a visitor soon becomes a person, and gives up after a while', async t => {
    const timers: { readonly run: () => void; readonly delayMs: number }[] = []
    const startTimer = (run: () => void, delayMs: number) => {
      timers.push({ run, delayMs })
      return { cancel: () => undefined }
    }
    const { store, values } = await start(t, { guard: { startTimer } })
    const nextLook = async () => {
      const look = timers.splice(0).find(({ delayMs }) => delayMs >= 300)
      look?.run()
      await new Promise(resolve => setImmediate(resolve))
      return look?.delayMs
    }
    const login = { ...request, distinct_id: 'user-3', $anon_distinct_id: 'user-1' }
    await values(login)
    await values({ ...login, $anon_distinct_id: 'user-9' })
    assert.equal(await nextLook(), 300)
    assert.deepEqual(store.writes, [])
    store.rows.set('user-3', [])
    assert.equal(await nextLook(), 700)
    assert.deepEqual(
      store.writes.map(({ distinctId, anonDistinctId, flagKeys }) => [distinctId, anonDistinctId, flagKeys]),
      [['user-3', 'user-1', allKeys]],
    )
    assert.equal(await nextLook(), undefined)

    await values({ ...login, distinct_id: 'user-4' })
    const pauses: (number | undefined)[] = []
    while (pauses.at(-1) !== undefined || pauses.length === 0) pauses.push(await nextLook())
    assert.deepEqual(pauses, [300, 700, 1_500, 3_000, 6_000, 15_000, 30_000, undefined])
    assert.equal(store.writes.length, 1)
  })

  it('reads nothing when no evaluated flag needs it', async t => {
    const { store, values } = await start(t)
    await values({ ...withAnon, flag_keys_to_evaluate: ['plain'] })
    await values({ ...request, flag_keys_to_evaluate: ['plain', 'everybody', 'of-group'] })
    assert.deepEqual(store.reads, [])
  })

  it('writes rows for all flags with continuity when one of them is evaluated, even one that needs no hash', async t => {
    const { store, values } = await start(t)
    await values({ ...withAnon, flag_keys_to_evaluate: ['everybody'] })
    assert.deepEqual(store.writes[0]?.flagKeys, allKeys)
  })

  it('reads but does not write for a detailed analysis and for requests that bring their own properties', async t => {
    const { store, values } = await start(t)
    store.rows.set('user-1', [['rollout-50', 'user-2']])
    for (const query of ['&detailed_analysis', '&only_use_override_person_properties=1'])
      assert.equal((await values(withAnon, query)).featureFlags['rollout-50'], false, 'by the row of user-1')
    assert.deepEqual(store.writes, [])
  })

  it('does not store an overlong anonymous id, but uses it in evaluations', async t => {
    const { store, values } = await start(t)
    const { errorsWhileComputingFlags } = await values({ ...request, $anon_distinct_id: 'x'.repeat(401) })
    assert.equal(errorsWhileComputingFlags, false)
    assert.deepEqual(store.writes, [])
  })

  it('fails only flags without a row while nothing can be written, and retries later', async t => {
    let isDown = true
    let nowMs = 0
    const { store, server, values } = await start(t, {
      fails: () => isDown,
      guard: { restMs: 1_000, monotonicNowMs: () => nowMs },
    })
    const others = { everybody: true, plain: true, 'of-group': false }
    for (let count = 0; count < 7; count++) assert.deepEqual((await values(withAnon)).featureFlags, others)
    assert.equal(store.writes.length, 5, 'the breaker is open')
    const detailed = await server.post('/flags?v=2', withAnon)
    const { reason, failed } = (detailed.json.flags as Record<string, JsonObject>)['rollout-50']!
    assert.deepEqual([failed, (reason as JsonObject).code], [true, 'hash_key_override_error'])
    assert.equal(detailed.json.errorsWhileComputingFlags, true)

    const withoutAnon = await values(request)
    assert.equal(withoutAnon.errorsWhileComputingFlags, false, 'nothing is to be written')
    store.rows.set('user-2', [['rollout-50', 'user-1']])
    assert.deepEqual(await values(withAnon).then(answer => answer.featureFlags), { ...others, 'rollout-50': true })

    isDown = false
    nowMs = 1_001
    assert.equal((await values(withAnon)).errorsWhileComputingFlags, false)
    assert.equal(store.writes.at(-1)?.flagKeys.length, 2)
  })

  it('fails flags that need a hash while rows cannot be read', async t => {
    const { values } = await start(t, {
      hashKeys: {
        findHashKeys: () => {
          throw new PortError('state', 'unavailable')
        },
        addMissingHashKeys: () => Promise.reject(new Error('asked for a write without having read')),
      },
    })
    const answer = await values(withAnon)
    assert.deepEqual(answer.featureFlags, { everybody: true, plain: true, 'of-group': false })
    assert.equal(answer.errorsWhileComputingFlags, true)
  })

  it('limits the total time of reading and writing', async t => {
    const bounds: number[] = []
    let nowMs = 0
    const { values } = await start(t, {
      hashKeys: {
        findHashKeys: async () => {
          nowMs += 100
          return []
        },
        addMissingHashKeys: () => new Promise(() => {}),
      },
      guard: {
        monotonicNowMs: () => nowMs,
        startTimer: (callback, delayMs) => {
          bounds.push(delayMs)
          const timer = bounds.length === 1 ? null : setImmediate(callback)
          return { cancel: () => timer && clearImmediate(timer) }
        },
      },
    })
    assert.equal((await values(request)).errorsWhileComputingFlags, false)
    bounds.length = 0
    assert.equal((await values(withAnon)).errorsWhileComputingFlags, true)
    assert.deepEqual(
      bounds,
      [250, 50, 200],
      'two ids were read, 100 ms each; the store has its whole time before it is judged',
    )
  })

  it('fails a flag whose row is stored too late, and uses that row afterwards', async t => {
    const rows = new Map<string, readonly HashKeyRow[]>([['user-2', []]])
    let store = () => {}
    const { server, values } = await start(t, {
      hashKeys: {
        findHashKeys: (_projectId, distinctId) => rows.get(distinctId) ?? null,
        addMissingHashKeys: ({ distinctId, flagKeys, anonDistinctId }) =>
          new Promise(resolve => {
            store = () => {
              const kept = flagKeys.map(key => [key, anonDistinctId] as const)
              rows.set(distinctId, kept)
              resolve(kept)
            }
          }),
      },
      guard: {
        // Reading takes no time here. The time is up after the write has begun and before it ends.
        startTimer: callback => {
          const timer = setImmediate(callback)
          return { cancel: () => clearImmediate(timer) }
        },
      },
    })
    const others = { everybody: true, plain: true, 'of-group': false }
    const beforeLogIn = await values({ ...request, distinct_id: 'user-1' })
    assert.equal(beforeLogIn.featureFlags['rollout-50'], true)
    assert.equal((await values(request)).featureFlags['rollout-50'], false, 'what the log-in would show without a row')
    const atLogIn = await values(withAnon)
    assert.deepEqual(atLogIn.featureFlags, others)
    assert.equal(atLogIn.errorsWhileComputingFlags, true)
    const detailed = await server.post('/flags?v=2', withAnon)
    const { failed, reason } = (detailed.json.flags as Record<string, JsonObject>)['rollout-50']!
    assert.deepEqual([failed, (reason as JsonObject).code], [true, 'hash_key_override_error'])
    store()
    for (const body of [withAnon, request]) {
      const later = await values(body)
      assert.deepEqual([later.featureFlags['rollout-50'], later.errorsWhileComputingFlags], [true, false])
    }
  })

  it('limits the number of requests that wait for a hanging store', async t => {
    let askedCount = 0
    let goOn = () => {}
    const { values } = await start(t, {
      hashKeys: {
        findHashKeys: () => {
          askedCount++
          return new Promise(resolve => {
            goOn = () => resolve([])
          })
        },
        addMissingHashKeys: async () => [],
      },
      guard: { pendingMax: 1, failuresMax: 1_000 },
    })
    const hanging = values(request)
    const refused = await Promise.all(Array.from({ length: 5 }, () => values(request)))
    assert.ok(refused.every(answer => answer.errorsWhileComputingFlags && answer.featureFlags.plain === true))
    assert.equal(askedCount, 1)
    goOn()
    await hanging
    assert.equal(askedCount, 1)
  })
})
