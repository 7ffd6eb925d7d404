// Two people, or two runs of a script, that change different things of one object at the same moment: neither change is lost.

import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { type ManagementApi, startManagement } from '../support/management-api.ts'

const project = '/api/projects/1/'

/** How many readers of one object have to have read it before the first of them goes on, for the next time. */
let readersAwaited = 0

/** As two fronts would: everybody has read before anybody writes. */
async function startReadingTogether(t: TestContext): Promise<ManagementApi> {
  let waiting: (() => void)[] = []
  const together = async <T>(found: T): Promise<T> => {
    if (readersAwaited === 0) return found
    if (waiting.length + 1 === readersAwaited) {
      readersAwaited = 0
      for (const go of waiting) go()
      waiting = []
    } else await new Promise<void>(resolve => waiting.push(resolve))
    return found
  }
  return startManagement(t, {
    wrap: store => ({
      ...store,
      findSurvey: async (...args) => together(await store.findSurvey(...args)),
      findExperiment: async (...args) => together(await store.findExperiment(...args)),
      findEarlyAccessFeature: async (...args) => together(await store.findEarlyAccessFeature(...args)),
    }),
  })
}

/** Sends all changes at once; what there is afterwards. */
async function changeAtOnce(api: ManagementApi, path: string, bodies: readonly object[]) {
  readersAwaited = bodies.length
  const answers = await Promise.all(bodies.map(body => api.call('PATCH', path, { body })))
  assert.deepEqual(
    answers.map(({ status }) => status),
    bodies.map(() => 200),
  )
  return (await api.call('GET', path)).body
}

async function create(api: ManagementApi, path: string, body: object): Promise<string> {
  const created = await api.call('POST', project + path, { body })
  assert.equal(created.status, 201, created.text)
  return `${project}${path}${created.body.id}/`
}

const questions = [{ id: 'q', type: 'open', question: 'Why?' }]

describe('changes at the same moment', () => {
  it('of different fields of a survey are all kept', async t => {
    const api = await startReadingTogether(t)
    const path = await create(api, 'surveys/', { name: 'S', type: 'popover', questions })
    const survey = await changeAtOnce(api, path, [
      { questions: [...questions, { id: 'r', type: 'open', question: 'How?' }] },
      { appearance: { position: 'left' } },
      { conditions: { url: '/pay' } },
      { description: 'd' },
      { start_date: '2026-04-01T00:00:00Z' },
    ])
    assert.deepEqual(
      [survey.questions.length, survey.appearance, survey.conditions, survey.description],
      [2, { position: 'left' }, { url: '/pay' }, 'd'],
    )
    const own = await api.call('GET', `${project}feature_flags/${survey.internal_targeting_flag.id}/`)
    assert.equal(own.body.active, true)
  })

  it('leave the flag of a survey off that is archived while it is started', async t => {
    const api = await startReadingTogether(t)
    const path = await create(api, 'surveys/', { name: 'S', type: 'popover', questions })
    const survey = await changeAtOnce(api, path, [{ start_date: '2026-04-01T00:00:00Z' }, { archived: true }])
    assert.equal(survey.archived, true)
    const own = await api.call('GET', `${project}feature_flags/${survey.internal_targeting_flag.id}/`)
    assert.equal(own.body.active, false)
  })

  it('of different fields of an experiment are all kept', async t => {
    const api = await startReadingTogether(t)
    const path = await create(api, 'experiments/', { name: 'X', feature_flag_key: 'button' })
    const experiment = await changeAtOnce(api, path, [
      { metrics: [{ kind: 'a' }] },
      { description: 'd' },
      { parameters: { minimum_detectable_effect: 3 } },
    ])
    assert.deepEqual(
      [experiment.metrics, experiment.description, experiment.parameters],
      [[{ kind: 'a' }], 'd', { minimum_detectable_effect: 3 }],
    )
  })

  it('leave an early access feature open with a flag that people decide about, or closed with one that they do not', async t => {
    const api = await startReadingTogether(t)
    const stages = [{ stage: 'archived' }, { stage: 'general-availability' }]
    for (const bodies of [stages, stages.toReversed()]) {
      const path = await create(api, 'early_access_feature/', { name: 'E', stage: 'beta' })
      const feature = await changeAtOnce(api, path, bodies)
      const { filters } = (await api.call('GET', `${project}feature_flags/${feature.feature_flag.id}/`)).body
      assert.equal(filters.feature_enrollment === true, feature.stage !== 'archived', feature.stage)
    }
  })
})
