// Projects of hundreds of flags: evaluated and answered in slices that all requests share, with the same answers.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type CompiledProject, compileProject } from '#core/flags/evaluation/compile-project.ts'
import { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import { EvaluationTrace } from '#core/flags/evaluation/evaluation-trace.ts'
import type { JsonObject } from '#core/json.ts'
import { isSteps, type MaybeSteps } from '#core/maybe-steps.ts'
import { type AnswerOptions, encodeEvaluation } from '#wire/flags/decide-response.ts'
import { encodeOfrepBulkAnswer } from '#wire/flags/ofrep-response.ts'
import { compileTestProject, flagFromJson, startDecideServer } from '../support/decide-server.ts'
import { aSubject } from '../support/evaluation-subject.ts'
import { bulkPath } from '../support/ofrep-server.ts'

const flagCount = 600
const flags: readonly JsonObject[] = Array.from({ length: flagCount }, (_, index) => ({
  id: index + 1,
  key: `flag-${index}`,
  active: index % 10 !== 9,
  filters: {
    groups: [{ properties: [], rollout_percentage: 50 }],
    payloads: (index % 3 === 0 ? { true: `{"index":${index}}` } : {}) as JsonObject,
  },
}))
const few = flags.slice(0, 100)
const body = { token: 'phc_test', distinct_id: 'ada' }
const options: AnswerOptions = {
  shape: 'V2',
  endpoint: 'flags',
  withConfig: false,
  requestId: '00000000-0000-4000-8000-000000000000',
  evaluatedAtMs: 0,
}

describe('an answer with hundreds of flags', () => {
  it('is encoded in steps the first time, with the same result as in one pass', () => {
    const { as, traced } = answersAbout(flags)
    const { steps, value } = stepsOf(as('V2'))
    assert.ok(steps >= 4, `${steps} steps`)
    assert.deepEqual(stepsOf(as('V2')), { steps: 0, value }, 'texts are made once per revision')
    const details = JSON.parse(value).flags as Record<string, JsonObject>
    assert.equal(Object.keys(details).length, flagCount * 0.9)
    const inOnePiece = answersAbout(few).as('V2')
    assert.ok(!isSteps(inOnePiece), 'one hundred need no steps')
    for (const [key, detail] of Object.entries<JsonObject>(JSON.parse(inOnePiece).flags))
      assert.deepEqual(details[key], detail)
    const withConditions = stepsOf(traced())
    assert.ok(withConditions.steps >= 4, `${withConditions.steps} steps`)
    for (const [key, detail] of Object.entries<JsonObject>(JSON.parse(withConditions.value).flags)) {
      const { conditions, ...rest } = detail
      assert.deepEqual(rest, details[key])
      assert.equal((conditions as unknown[]).length, 1)
    }
  })

  it('is encoded in steps for OpenFeature too', () => {
    const { steps, value } = stepsOf(answersAbout(flags).bulk())
    assert.ok(steps >= 4, `${steps} steps`)
    assert.ok(value.ok)
    const items = (JSON.parse(value.value) as { flags: { key: string; reason: string }[] }).flags
    assert.deepEqual(
      items.map(({ key }) => key),
      flags.map(({ key }) => key),
    )
    assert.ok(items.every(({ reason }, index) => (reason === 'DISABLED') === (index % 10 === 9)))
    assert.ok(!isSteps(answersAbout(few).bulk()))
  })
})

describe('answers after a flag is added', () => {
  it('reuse the encoded texts of unchanged flags, and encode only the new one', t => {
    const before = compileTestProject({ flags: few })
    const answer = (project: CompiledProject) => {
      const [flagsAnswer, bulk] = [
        encodeEvaluation(evaluated(project), options),
        encodeOfrepBulkAnswer(evaluated(project), 'all', ''),
      ]
      assert.ok(!isSteps(flagsAnswer) && !isSteps(bulk) && bulk.ok)
      return [flagsAnswer, bulk.value]
    }
    answer(before)
    const added = flagFromJson({ id: 9_999, key: 'added', filters: { groups: [{ properties: [] }] } })
    const definitions = { ...before.definitions, flags: [...before.definitions.flags, added] }
    const after = compileProject(definitions, before)
    assert.equal(after.compiledFlagCount, 1)
    const encoded = t.mock.method(JSON, 'stringify').mock
    const answers = answer(after)
    const texts = encoded.calls.map(call => call.result ?? '')
    encoded.restore()
    assert.ok(texts.some(text => text.includes('"added"')))
    for (const { key } of few) assert.ok(!texts.some(text => text.includes(`"${key}"`)), texts.join('\n'))
    assert.deepEqual(answers, answer(compileProject(definitions)))
  })
})

describe('requests for hundreds of flags', () => {
  it('get the same answers when many run concurrently in the shortest slices', async t => {
    const whole = await startDecideServer(t, { flags })
    const sliced = await startDecideServer(t, { flags, slices: { sliceMs: 0 } })
    const ids = Array.from({ length: 6 }, (_, index) => `person ${index}`)
    const ask = (server: typeof whole, distinct_id: string) =>
      server.post('/flags?v=2&detailed_analysis=1', { ...body, distinct_id })
    const answers = await Promise.all(ids.map(id => ask(sliced, id)))
    for (const [index, id] of ids.entries()) {
      const expected = await ask(whole, id)
      assert.deepEqual([answers[index]!.status, answers[index]!.json.flags], [200, expected.json.flags])
    }
    assert.equal(sliced.counted.length, ids.length)
  })

  it('are answered 503 and not counted if too many wait, while smaller requests are served', async t => {
    const server = await startDecideServer(t, { flags, slices: { sliceMs: 0, waitingMax: 0 } })
    const answer = await server.post('/flags?v=2', body)
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '1'])
    assert.equal(answer.json.code, 'transient_error')
    const ofrep = await server.post(bulkPath, { context: { targetingKey: 'ada' } }, { 'x-api-key': 'phc_test' })
    assert.deepEqual([ofrep.status, ofrep.headers.get('retry-after'), ofrep.json.errorCode], [503, '1', 'GENERAL'])
    assert.deepEqual(server.counted, [])
    const small = await server.post('/flags?v=2', { ...body, flag_keys_to_evaluate: ['flag-0'] })
    assert.deepEqual([small.status, Object.keys(small.json.flags as JsonObject)], [200, ['flag-0']])
  })
})

function answersAbout(some: readonly JsonObject[]) {
  const project = compileTestProject({ flags: some })
  return {
    as: (shape: AnswerOptions['shape']) => encodeEvaluation(evaluated(project), { ...options, shape }),
    traced: () => encodeEvaluation(evaluated(project, new EvaluationTrace()), options),
    bulk: () => encodeOfrepBulkAnswer(evaluated(project), 'all', ''),
  }
}

function evaluated(project: CompiledProject, trace: EvaluationTrace | null = null): FlagEvaluation {
  const evaluation = new FlagEvaluation(project, null, aSubject({ distinctId: 'ada' }), trace)
  evaluation.advance(() => false)
  return evaluation
}

function stepsOf<T>(made: MaybeSteps<T>): { steps: number; value: T } {
  assert.ok(isSteps(made))
  for (let steps = 0; ; steps++) {
    const step = made.next()
    if (step.done === true) return { steps, value: step.value }
  }
}
