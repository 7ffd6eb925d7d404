import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { nextLine } from '#commands/import/messages/next-line.ts'
import type { ServiceAnswer } from '../service/ask-service.ts'
import { nextStep, type Standing } from './next-step.ts'

const fresh: Standing = {
  ...{ isRehearsed: false, hasTarget: true, stopAt: () => null, changed: null, sent: null, overlapDays: 0 },
  ...{ changedFile: null, ending: null, remedy: null },
}
const rehearsed: Standing = { ...fresh, isRehearsed: true }
const approved: Standing = { ...rehearsed, changed: [] }
const sent = { events: 9, refused: 0, isAll: true, isVerified: true, serviceJobId: '7', repaired: null }
const inService = (state: string): ServiceAnswer => ({
  ...{ id: '7', state, step: null },
  ...{ publishedAt: null, discardedAt: null, failure: null },
})

const silent: ServiceAnswer = { id: '7', unknownBecause: 'away' }
const ended = (how: 'publish' | 'discard', isDone: boolean): Standing => ({
  ...{ ...approved, sent },
  ending: { serviceJobId: '7', how, isDone },
})

describe('the next step of an import', () => {
  const cases: readonly (readonly [what: string, standing: Standing, service: ServiceAnswer, command: string])[] = [
    ['of a plan', fresh, null, 'run it'],
    ['of a rehearsal', rehearsed, null, 'approve it'],
    [
      'of too many rejects',
      { ...rehearsed, stopAt: at => ({ command: `pennon import rejects ${at} --group`, wayOut: 'mend' }) },
      null,
      'rejects it --group',
    ],
    ['without a target', { ...rehearsed, hasTarget: false }, null, 'plan it … --project-key phc_…'],
    ['of an approval', approved, null, 'run it'],
    ['of live events of the same days', { ...approved, overlapDays: 2 }, null, 'run it --overlap-ok'],
    ['of a half that was begun so', { ...approved, overlapDays: 2, sent: { ...sent, isAll: false } }, null, 'run it'],
    ['of an approval of something else', { ...approved, changed: ['the limits'] }, null, 'approve it'],
    ['of a half', { ...approved, sent: { ...sent, isAll: false } }, inService('sending'), 'run it'],
    ['before verifying', { ...approved, sent: { ...sent, isVerified: null } }, inService('verifying'), 'run it'],
    ['of differences', { ...approved, sent: { ...sent, isVerified: false } }, inService('verifying'), 'run it'],
    ['of what is verified', { ...approved, sent }, inService('pending'), 'publish it'],
    ['where the service is silent', { ...approved, sent }, silent, 'publish it'],
    ['of what this folder published, in silence', ended('publish', true), silent, 'discard it'],
    ['of what this folder asked to publish, in silence', ended('publish', false), silent, 'publish it'],
    ['of what this folder asked to discard, in silence', ended('discard', false), silent, 'discard it'],
    ['of what this folder discarded, without an answer', ended('discard', true), null, 'plan ANOTHER-FOLDER'],
    ['of what somebody else takes back', ended('publish', true), inService('discarding'), 'discard it'],
    ['while it is published', { ...approved, sent }, inService('publishing'), 'publish it'],
    ['once it is published', { ...approved, sent }, inService('published'), 'discard it'],
    ['while it is discarded', { ...approved, sent }, inService('discarding'), 'discard it'],
    ['once it is discarded', { ...approved, sent }, inService('discarded'), 'plan ANOTHER-FOLDER'],
    ['of a failure', { ...approved, sent }, inService('failed'), 'discard it'],
  ]
  for (const [what, standing, service, command] of cases)
    it(`${what} is ${command}`, () => {
      assert.equal(nextStep('it', standing, service).command, `pennon import ${command}`)
    })

  it('of a file that changed is to put it back, which no command does', () => {
    const next = nextStep('it', { ...rehearsed, changedFile: 'raw.jsonl' }, null)
    assert.equal(next.command, null)
    assert.match(nextLine(next), /^Next: make raw\.jsonl again what was staged, then pennon import run it; /)
  })

  it('of a run that would only stop again is what has to be done first, in a command or in words', () => {
    const zone = { command: 'pennon import run FOLDER --source-timezone ZONE', why: 'ZONE is that of the project' }
    const key = { command: null, why: 'set another key, then pennon import run FOLDER' }
    const at = (standing: Standing) => nextLine(nextStep("ada's", standing, null))
    assert.equal(
      at({ ...fresh, remedy: zone }),
      "Next: pennon import run 'ada'\\''s' --source-timezone ZONE (ZONE is that of the project)",
    )
    assert.equal(at({ ...approved, remedy: key }), "Next: set another key, then pennon import run 'ada'\\''s'")
    assert.match(
      at({ ...rehearsed, remedy: key }),
      /^Next: pennon import approve/,
      'what is not the same command holds',
    )
  })

  it('is never what takes back an import that is done', () => {
    const line = nextLine(nextStep('it', { ...approved, sent }, inService('published')))
    assert.equal(line, 'All is done. Only to take it back, within 30 days: pennon import discard it')
  })

  it('can be typed as it is, whatever the folder is called', () => {
    assert.equal(
      nextLine({ ...nextStep("ada's jobs", fresh, null), why: 'why' }),
      "Next: pennon import run 'ada'\\''s jobs' (why)",
    )
  })
})
