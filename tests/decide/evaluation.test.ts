import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import { flagValueOf } from '#core/flags/evaluation/flag-outcome.ts'
import type { JsonObject, JsonValue } from '#core/json.ts'
import { ok } from '#core/result.ts'
import { compileTestProject, startDecideServer } from '../support/decide-server.ts'
import { allFlags, aSubject, evaluateFlags, evaluateInSlices } from '../support/evaluation-subject.ts'

function valuesOf(evaluation: FlagEvaluation): Map<string, boolean | string | undefined> {
  const values = new Map<string, boolean | string | undefined>()
  for (const [position, outcome] of evaluation.outcomes.entries()) {
    if (outcome !== undefined) values.set(evaluation.project.flags[position]!.key, flagValueOf(outcome))
  }
  return values
}

function personFlag(id: number, key: string, property: string, value: JsonValue, operator = 'exact'): JsonObject {
  return { id, key, filters: { groups: [{ properties: [{ key: property, type: 'person', operator, value }] }] } }
}

describe('an evaluation', () => {
  it('gives the same values in time slices as in one pass', () => {
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

  it('drops only an unreadable definition, reports it, and treats it as missing in flags that test it', () => {
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

  it('isolates a failing flag from other flags', () => {
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
