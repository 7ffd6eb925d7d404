import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eventually } from '../../support/eventually.ts'
import { testProjectKey } from '../../support/pennon.ts'
import { startedForTests } from '../../support/started-for-tests.ts'
import { storedPerson } from '../acceptance.ts'
import { noChromium, type Visit } from './browser.ts'
import { ask, flagOf, only, shows, startSite } from './site.ts'

// A visitor opts in to an early access feature and answers a survey, with the installed posthog-js loaded from Pennon.
// Source: docs/wire/evaluation.md 5.7, 7.4, 7.5; docs/wire/clients.md 13, rows 60 and 61.

const skip = noChromium()
const api = '/api/projects/@current'
/** A folder for screenshots of what the visitor saw; none are taken without it. */
const pictures = process.env.TEST_PICTURES
const site = startedForTests(startSite, skip)

const open = (options = '') => site.open(`${site.acceptance.proxy.url}/static/array.js`, options)

async function picture(visitor: Visit, name: string): Promise<void> {
  if (pictures !== undefined) await visitor.page.screenshot({ path: `${pictures}/${name}.png` })
}

/** Opens the page again as the same visitor. */
async function reload(visitor: Visit): Promise<void> {
  await visitor.page.reload()
  await visitor.page.waitForFunction('window.shown?.flagsLoaded > 0')
}

describe('an early access feature in a page', { skip }, () => {
  it('is listed, and opting in or out changes its flag at once and on the next load', async () => {
    const { pennon } = site.acceptance
    const feature = await pennon.api<{ id: string }>('POST', `${api}/early_access_feature/`, {
      ...{ name: 'Faster checkout', description: 'Pay in one step', stage: 'beta', payload: { badge: 'new' } },
      documentation_url: 'https://docs.example/checkout',
    })
    // Else the choice of a visitor who was not identified stays in the browser.
    const visitor = await open("person_profiles: 'always'")
    assert.equal(await ask(visitor, flagOf('faster-checkout')), false)
    const listed = await ask<unknown>(visitor, 'new Promise(resolve => posthog.getEarlyAccessFeatures(resolve, true))')
    assert.deepEqual(listed, [
      {
        ...{ id: feature.id, name: 'Faster checkout', description: 'Pay in one step', stage: 'beta' },
        ...{ payload: { badge: 'new' }, documentationUrl: 'https://docs.example/checkout', flagKey: 'faster-checkout' },
      },
    ])
    const id = await ask<string>(visitor, 'posthog.get_distinct_id()')
    const choose = async (isEnrolled: boolean) => {
      await ask(visitor, `posthog.updateEarlyAccessFeatureEnrollment('faster-checkout', ${isEnrolled}, 'beta')`)
      await shows(visitor, flagOf('faster-checkout'), isEnrolled)
      await eventually(
        async () => {
          const person = await storedPerson(pennon, id)
          return person?.properties['$feature_enrollment/faster-checkout'] === isEnrolled
        },
        { what: 'the choice to be stored' },
      )
    }
    await choose(true)
    const events = await site.storedWith(id, '$feature_enrollment_update')
    assert.equal(only(events, '$feature_enrollment_update').properties.$feature_flag, 'faster-checkout')
    await reload(visitor)
    assert.equal(await ask(visitor, flagOf('faster-checkout')), true)
    await picture(visitor, 'feature-on')
    // The page forgets the choice, so that the stored person decides.
    await ask(visitor, 'posthog.resetPersonPropertiesForFlags()')
    await ask(visitor, 'posthog.reloadFeatureFlags()')
    await shows(visitor, flagOf('faster-checkout'), true)

    await choose(false)
    await reload(visitor)
    assert.equal(await ask(visitor, flagOf('faster-checkout')), false)
    site.assertQuiet(visitor)
    await visitor.close()
  })
})

describe('a survey in a page', { skip }, () => {
  it('is shown to visitors if the linked flag is on, and not again once their answer is stored', async () => {
    const { pennon } = site.acceptance
    const flags = `${api}/feature_flags/`
    const linked = await pennon.api<{ id: number }>('POST', flags, {
      key: 'asks-why',
      filters: { groups: [{ properties: [], rollout_percentage: 0 }] },
    })
    const question = 'What nearly stopped you from buying?'
    const survey = await pennon.api<{ id: string; internal_targeting_flag: { key: string } }>(
      'POST',
      `${api}/surveys/`,
      {
        ...{ name: 'Why', type: 'popover', questions: [{ id: 'q-why', type: 'open', question, buttonText: 'Send' }] },
        ...{ linked_flag_id: linked.id, start_date: new Date(0).toISOString() },
        appearance: { displayThankYouMessage: true, thankYouMessageHeader: 'Thank you!' },
      },
    )
    const asks = (visitor: Visit) => visitor.page.getByText(question)

    const without = await open()
    await eventually(() => site.acceptance.proxy.exchanges.some(({ path }) => path.startsWith('/api/surveys/')), {
      what: 'the surveys to be asked for',
    })
    assert.equal(await asks(without).count(), 0, 'whoever has not the flag is not asked')
    site.assertQuiet(without)
    await without.close()

    await pennon.api('PATCH', `${flags}${linked.id}/`, {
      filters: { groups: [{ properties: [], rollout_percentage: 100 }] },
    })
    const visitor = await open("person_profiles: 'always'")
    const id = await ask<string>(visitor, 'posthog.get_distinct_id()')
    await asks(visitor).waitFor()
    await picture(visitor, 'survey-asked')
    await visitor.page.locator('textarea').fill('The long form')
    await visitor.page.getByText('Send', { exact: true }).click()
    await visitor.page.getByText('Thank you!').waitFor()
    await picture(visitor, 'survey-answered')
    const stored = await site.storedWith(id, 'survey shown', 'survey sent')
    const sent = only(stored, 'survey sent').properties
    assert.deepEqual([sent.$survey_id, sent.$survey_name], [survey.id, 'Why'])
    assert.equal(sent['$survey_response_q-why'], 'The long form')
    const person = await storedPerson(pennon, id)
    assert.equal(person?.properties[`$survey_responded/${survey.id}`], true)

    // Another device of the same person, whose storage does not know that the survey was seen.
    const elsewhere = await open()
    await ask(elsewhere, `posthog.identify('${id}-known')`)
    await pennon.post('/capture/', {
      ...{ api_key: testProjectKey, event: '$identify', distinct_id: `${id}-known` },
      properties: { $set: { [`$survey_responded/${survey.id}`]: true } },
    })
    await pennon.caughtUp()
    await reload(elsewhere)
    assert.equal(await ask(elsewhere, flagOf(survey.internal_targeting_flag.key)), false)
    assert.equal(await ask(elsewhere, flagOf('asks-why')), true)
    site.assertQuiet(elsewhere)
    await elsewhere.close()
    site.assertQuiet(visitor)
    await visitor.close()
  })

  it('disappears from pages when it ends, and surveys are no longer requested', async () => {
    const { pennon, proxy } = site.acceptance
    const { results } = await pennon.api<{ results: { id: string }[] }>('GET', `${api}/surveys/`)
    for (const { id } of results)
      await pennon.api('PATCH', `${api}/surveys/${id}/`, { end_date: new Date(1).toISOString() })
    const visitor = await open()
    await site.storedWith(await ask<string>(visitor, 'posthog.get_distinct_id()'), '$pageview')
    assert.ok(proxy.exchanges.every(({ path }) => !path.startsWith('/api/surveys/')))
    site.assertQuiet(visitor)
    await visitor.close()
  })
})
