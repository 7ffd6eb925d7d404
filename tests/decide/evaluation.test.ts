import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import type { EvaluationSubject } from '#core/flags/evaluation/evaluation-subject.ts'
import { flagValue } from '#core/flags/evaluation/flag-outcome.ts'
import type { JsonObject, JsonValue, PropertyBag } from '#core/json.ts'
import { ok } from '#core/result.ts'
import { compileTestProject, startDecideServer, type TestDefinitions } from '../support/decide-server.ts'
import { allFlags, aSubject, evaluateFlags, evaluateInSlices } from '../support/evaluation-subject.ts'

function valuesOf(evaluation: FlagEvaluation): Map<string, boolean | string | undefined> {
  const values = new Map<string, boolean | string | undefined>()
  for (const [position, outcome] of evaluation.outcomes.entries()) {
    if (outcome !== undefined) values.set(evaluation.project.flags[position]!.key, flagValue(outcome))
  }
  return values
}

function evaluate(definitions: TestDefinitions, subject: Partial<EvaluationSubject> = {}, selection = allFlags) {
  return valuesOf(evaluateFlags(compileTestProject(definitions), selection, aSubject(subject)))
}

function personFlag(id: number, key: string, property: string, value: JsonValue, operator = 'exact'): JsonObject {
  return { id, key, filters: { groups: [{ properties: [{ key: property, type: 'person', operator, value }] }] } }
}

const someFlags = fc.uniqueArray(
  fc.record({
    key: fc.string({ minLength: 1, maxLength: 12 }),
    rollout: fc.double({ min: 0, max: 100, noNaN: true }),
    plan: fc.constantFrom('pro', 'free'),
    variants: fc.array(fc.nat(100), { maxLength: 3 }),
  }),
  { selector: flag => flag.key, minLength: 1, maxLength: 8 },
)

function flagOf(flag: { key: string; rollout: number; plan: string; variants: number[] }, id: number): JsonObject {
  const variants = flag.variants.map((weight, index) => ({ key: `v${index}`, rollout_percentage: weight }))
  const properties = [{ key: 'plan', type: 'person', value: flag.plan }]
  return {
    id,
    key: flag.key,
    filters: { groups: [{ properties, rollout_percentage: flag.rollout }], multivariate: { variants } },
  }
}

describe('evaluation', () => {
  it('sees the key and the sent properties of a group whose key cannot be hashed, and nothing of a group that was not sent', () => {
    const flag = (id: number, key: string, filter: JsonObject): JsonObject => ({
      id,
      key,
      filters: { groups: [{ properties: [{ type: 'group', group_type_index: 0, ...filter }] }] },
    })
    const flags = [
      flag(1, 'has-key', { key: '$group_key', operator: 'is_set', value: 'is_set' }),
      flag(2, 'has-no-key', { key: '$group_key', operator: 'is_not_set', value: 'is_not_set' }),
      flag(3, 'large', { key: 'size', operator: 'exact', value: 'large' }),
      flag(4, 'is-true', { key: '$group_key', operator: 'exact', value: 'true' }),
    ]
    const definitions = { flags, groupTypes: { 0: 'company' } }
    const valuesFor = (groups: JsonObject) =>
      [...evaluate(definitions, { groups, groupProperties: { company: { size: 'large' } } })].filter(([, on]) => on)
    assert.deepEqual(
      valuesFor({ company: '' }).map(([key]) => key),
      ['has-key', 'large'],
    )
    assert.deepEqual(
      valuesFor({ company: true }).map(([key]) => key),
      ['has-key', 'large', 'is-true'],
    )
    assert.deepEqual(
      valuesFor({ company: 'acme' }).map(([key]) => key),
      ['has-key', 'large'],
    )
    assert.deepEqual(
      valuesFor({}).map(([key]) => key),
      ['has-no-key'],
    )
  })

  it('of a flag does not depend on unrelated flags', () => {
    fc.assert(
      fc.property(someFlags, fc.string({ maxLength: 20 }), (flags, distinctId) => {
        const subject = { distinctId, personProperties: { plan: 'pro' } }
        const together = evaluate({ flags: flags.map(flagOf) }, subject)
        for (const flag of flags) {
          assert.equal(evaluate({ flags: [flagOf(flag, 1)] }, subject).get(flag.key), together.get(flag.key))
        }
      }),
    )
  })

  it('gives the same values in slices as in one pass', () => {
    const flags = Array.from({ length: 1_500 }, (_, index) => ({
      ...personFlag(index + 1, `flag-${index}`, 'plan', 'pro'),
    }))
    const project = compileTestProject({ flags })
    const subject = aSubject({ personProperties: { plan: 'pro' } })
    const { evaluation: sliced, sliceCount } = evaluateInSlices(project, subject)
    assert.ok(sliceCount > 3, `${sliceCount} slices`)
    assert.deepEqual(valuesOf(sliced), valuesOf(evaluateFlags(project, allFlags, subject)))
  })

  it('checks the clock after every flag once a large property value is among its inputs', () => {
    const flags = Array.from({ length: 10 }, (_, index) =>
      personFlag(index + 1, `flag-${index}`, 'plan', `pro-${index}`),
    )
    for (const plan of ['x'.repeat(100_000), ['x'], JSON.rawJSON(`1${'0'.repeat(100_000)}`) as unknown as JsonValue]) {
      const subject = aSubject({ personProperties: { plan } })
      const { sliceCount } = evaluateInSlices(compileTestProject({ flags }), subject)
      assert.equal(sliceCount, flags.length)
    }
  })

  it('drops an unreadable definition alone, names it, and counts it as missing for those that test it', () => {
    const flags: JsonObject[] = [
      personFlag(1, 'good', 'plan', 'pro', 'is_not'),
      personFlag(2, 'bad-operator', 'plan', 'pro', 'sounds_like'),
      { id: 3, key: 'bad-type', filters: { groups: [{ properties: [{ key: 'plan', value: 'pro' }] }] } },
      { id: 4, key: 'bad-percentage', filters: { groups: [{ rollout_percentage: '50' }] } },
      { id: 5, key: 'bad-groups', filters: { groups: 'all' } },
      {
        id: 6,
        key: 'behind',
        filters: {
          groups: [{ properties: [{ key: '2', type: 'flag', operator: 'flag_evaluates_to', value: false }] }],
        },
      },
      personFlag(7, 'bad-pattern', 'plan', '(?=a)', 'regex'),
    ]
    const project = compileTestProject({ flags })
    const evaluation = evaluateFlags(project, allFlags, aSubject())
    assert.deepEqual(Object.fromEntries(valuesOf(evaluation)), { good: true, behind: false, 'bad-pattern': false })
    assert.equal(evaluation.hasErrors, false)
    assert.deepEqual(
      project.problems.map(problem => problem.flagKey),
      ['bad-operator', 'bad-type', 'bad-percentage', 'bad-groups', 'bad-pattern'],
    )
  })

  it('drops a flag that cannot be compiled, and keeps the rest of the project', () => {
    const flags = [personFlag(1, 'dated', 'at', '2026-01-01', 'is_date_before'), personFlag(2, 'plain', 'plan', 'pro')]
    const project = compileTestProject({ flags, project: { timezone: 'Mars/Olympus' } })
    const evaluation = evaluateFlags(project, allFlags, aSubject({ personProperties: { plan: 'pro' } }))
    assert.deepEqual([...valuesOf(evaluation)], [['plain', true]])
    assert.match(project.problems[0]!.message, /cannot be compiled/)
  })

  it('reads person properties from the request, the GeoIP look-up, the store and derived values, in this order', () => {
    const key = '$geoip_country_code'
    const definitions = {
      flags: [
        personFlag(1, 'country', key, 'NO'),
        personFlag(2, 'initial', '$initial_utm_source', 'mail'),
        personFlag(3, 'os', '$os_name', 'iOS'),
        personFlag(4, 'id', 'distinct_id', 'user-1'),
        personFlag(5, 'initial-os', '$initial_os', 'iOS'),
      ],
    }
    const stored = (properties: PropertyBag) => ({ person: ok({ properties, createdAtMs: 0 }) })
    const value = (subject: Partial<EvaluationSubject>, name: string) => evaluate(definitions, subject).get(name)
    const geoip = { [key]: 'NO' }
    assert.equal(value({ geoip, ...stored({ [key]: 'US' }) }, 'country'), true)
    assert.equal(value({ geoip, personProperties: { [key]: 'US' } }, 'country'), false)
    assert.equal(value({ geoip, personProperties: { [key]: null } }, 'country'), true)
    assert.equal(value({ personProperties: { [key]: null }, ...stored({ [key]: 'NO' }) }, 'country'), false)
    assert.equal(value({ personProperties: { utm_source: 'mail' } }, 'initial'), true)
    assert.equal(
      value({ personProperties: { utm_source: 'mail' }, ...stored({ $initial_utm_source: 'ad' }) }, 'initial'),
      false,
    )
    assert.equal(value({ personProperties: { $os: 'iOS' } }, 'os'), true)
    assert.equal(value({ personProperties: { $os: 'iOS' }, ...stored({ $os_name: 'Linux' }) }, 'os'), false)
    assert.equal(value({ personProperties: { $os_name: 'iOS' } }, 'initial-os'), true)
    assert.equal(value(stored({ distinct_id: 'other' }), 'id'), true)
    assert.equal(value({ distinctId: '', ...stored({ distinct_id: 'user-1' }) }, 'id'), true)
  })

  it('reads person_metadata from the stored person alone', () => {
    const filter = { key: 'created_at', type: 'person_metadata', operator: 'is_date_before', value: '2026-01-01' }
    const definitions = { flags: [{ id: 1, key: 'old', filters: { groups: [{ properties: [filter] }] } }] }
    const person = ok({ properties: {}, createdAtMs: Date.parse('2025-12-31T23:00:00Z') })
    assert.equal(evaluate(definitions, { person }).get('old'), true)
    assert.equal(evaluate(definitions, { personProperties: { created_at: '2020-01-01' } }).get('old'), false)
  })

  it('skips person sets of a device-bucketed flag without a device, and never exits early for it', () => {
    const flag = {
      id: 1,
      key: 'device',
      bucketing_identifier: 'device_id',
      filters: { early_exit: true, groups: [{ rollout_percentage: 100 }, { rollout_percentage: 100 }] },
    }
    const evaluation = evaluateFlags(compileTestProject({ flags: [flag] }), allFlags, aSubject())
    assert.equal(evaluation.outcomes[0]!.reason, 'out_of_rollout_bound')
    assert.equal(evaluation.outcomes[0]!.conditionIndex, 1)
    assert.equal(evaluate({ flags: [flag] }, { deviceId: 'd' }).get('device'), true)
  })

  it('fails only the flags whose override rows could not be read and matter', () => {
    const continuity = (id: number, key: string, rollout: number) => ({
      id,
      key,
      ensure_experience_continuity: true,
      filters: { groups: [{ rollout_percentage: rollout }] },
    })
    const flags = [continuity(1, 'hashed', 50), continuity(2, 'everybody', 100), continuity(3, 'with-row', 50)]
    const hashKeyOverrides = { rows: new Map([['with-row', '']]), failure: 'hash_key_override_error' } as const
    const values = evaluate({ flags }, { hashKeyOverrides })
    assert.deepEqual(
      [...values],
      [
        ['hashed', undefined],
        ['everybody', true],
        ['with-row', true],
      ],
    )
  })

  it('isolates a failing flag from the others', () => {
    const flags = [personFlag(1, 'deep', 'a', 'x'), personFlag(2, 'fine', 'plan', 'pro')]
    let deep: JsonValue = 1
    for (let depth = 0; depth < 200_000; depth++) deep = [deep]
    const person = ok({ properties: { a: deep, plan: 'pro' }, createdAtMs: 0 })
    const evaluation = evaluateFlags(compileTestProject({ flags }), allFlags, aSubject({ person }))
    assert.deepEqual(
      [...valuesOf(evaluation)],
      [
        ['deep', undefined],
        ['fine', true],
      ],
    )
    assert.ok(evaluation.fault instanceof RangeError)
  })
})

describe('an evaluation that takes long', () => {
  it('yields to the event loop between slices', async t => {
    let nowMs = 0
    let turnCount = 0
    const turnsWithWork = new Set<number>()
    const server = await startDecideServer(t, {
      flags: Array.from({ length: 3_000 }, (_, index) => personFlag(index + 1, `flag-${index}`, 'plan', 'pro')),
      // Each reading of the clock is 11 ms later than the last, so that whoever has worked looks too late.
      guard: {
        monotonicNowMs: () => {
          turnsWithWork.add(turnCount)
          nowMs += 11
          return nowMs
        },
      },
    })
    let isCounting = true
    const count = () => {
      turnCount++
      if (isCounting) setImmediate(count)
    }
    const answered = server.post('/decide?v=3', {
      api_key: 'phc_test',
      distinct_id: 'a',
      person_properties: { plan: 'pro' },
    })
    setImmediate(count)
    const answer = await answered
    isCounting = false
    assert.equal(Object.values(answer.json.featureFlags as JsonObject).filter(value => value === true).length, 3_000)
    assert.ok(turnsWithWork.size > 3, `work in ${turnsWithWork.size} turns`)
  })
})

describe('GeoIP of an evaluation', () => {
  it('looks up the address of the override header, unless the caller disables it', async t => {
    const asked: string[] = []
    const server = await startDecideServer(t, {
      flags: [personFlag(1, 'norway', '$geoip_country_code', 'NO')],
      geoip: {
        lookUp: address => {
          asked.push(address)
          return address === '84.208.1.1' ? { country_code: 'NO' } : null
        },
      },
    })
    const body = { api_key: 'phc_test', distinct_id: 'a' }
    const headers = { http_x_forwarded_for: '84.208.1.1', 'x-forwarded-for': '8.8.8.8' }
    const at = async (extra: JsonObject, sent: Record<string, string>) => {
      const answer = await server.post('/decide?v=3', { ...body, ...extra }, sent)
      return (answer.json.featureFlags as JsonObject).norway
    }
    assert.equal(await at({}, headers), true)
    assert.equal(await at({ geoip_disable: true }, headers), false)
    assert.equal(await at({ disable_geoip: true }, headers), false)
    assert.equal(await at({}, {}), false)
    assert.deepEqual(asked, ['84.208.1.1', '127.0.0.1'])
  })
})
