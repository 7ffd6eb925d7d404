import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Verification } from '#importer/stages/report/import-report.ts'
import { formatNextStep } from '../messages/print.ts'
import type { ServiceAnswer } from '../service/query-service-job.ts'
import { findNextStep, type NextStepState } from './next-step.ts'

const fresh: NextStepState = {
  ...{ isRehearsed: false, hasTarget: true, stopAt: () => null, changed: null, sent: null },
  ...{ changedFile: null, ending: null, remedy: null, approvalSha256: null, isAttended: false },
}
const rehearsed: NextStepState = { ...fresh, isRehearsed: true, approvalSha256: '0123456789abcdef'.repeat(4) }
const approved: NextStepState = { ...rehearsed, changed: [] }
const sent = { isAll: true, verification: { ok: true } as Verification }
const inService = (state: string): ServiceAnswer => ({
  ...{ id: '7', state, step: null },
  ...{ publishedAt: null, discardedAt: null, failure: null },
})

const silent: ServiceAnswer = { id: '7', unknownBecause: 'away' }
const verified: NextStepState = { ...approved, sent }
const differing: NextStepState = { ...approved, sent: { ...sent, verification: { ok: false } as Verification } }
const rejecting = (at: string) => ({ command: `pennon import rejects ${at} --group`, remedy: 'mend' })
const ended = (how: 'publish' | 'discard', isDone: boolean): NextStepState => ({
  ...verified,
  ending: { serviceJobId: '7', how, isDone },
})

describe('the next step of an import', () => {
  const cases: readonly (readonly [what: string, jobState: NextStepState, service: ServiceAnswer, command: string])[] =
    [
      ['after planning', fresh, null, 'run it'],
      ['after a rehearsal', rehearsed, null, 'run it --yes 0123456789ab'],
      ['after a rehearsal, on a terminal, which asks', { ...rehearsed, isAttended: true }, null, 'run it'],
      ['after too many rejects', { ...rehearsed, stopAt: rejecting }, null, 'rejects it --group'],
      ['without a target', { ...rehearsed, hasTarget: false }, null, 'plan it … --project-key phc_…'],
      ['after the approval', approved, null, 'run it'],
      ['when the limits changed since', { ...approved, changed: ['the limits'] }, null, 'run it --yes 0123456789ab'],
      ['once half is sent', { ...approved, sent: { ...sent, isAll: false } }, inService('sending'), 'run it'],
      ['before verifying', { ...approved, sent: { ...sent, verification: null } }, inService('verifying'), 'run it'],
      ['after verifying found differences', differing, inService('verifying'), 'run it'],
      ['once verified', verified, inService('pending'), 'publish it'],
      ['once verified, without an answer of the service', verified, silent, 'publish it'],
      ['once this folder published, without an answer', ended('publish', true), silent, 'discard it'],
      ['once this folder asked to publish, without an answer', ended('publish', false), silent, 'publish it'],
      ['once this folder asked to discard, without an answer', ended('discard', false), silent, 'discard it'],
      ['once this folder discarded, without asking', ended('discard', true), null, 'plan ANOTHER-FOLDER'],
      [
        'while another folder discards what is published',
        ended('publish', true),
        inService('discarding'),
        'discard it',
      ],
      ['while the service publishes', verified, inService('publishing'), 'publish it'],
      ['once published', verified, inService('published'), 'discard it'],
      ['while the service discards', verified, inService('discarding'), 'discard it'],
      ['once discarded', verified, inService('discarded'), 'plan ANOTHER-FOLDER'],
      ['after a failure', verified, inService('failed'), 'discard it'],
    ]
  for (const [what, jobState, service, command] of cases)
    it(`${what}: pennon import ${command}`, () => {
      assert.equal(findNextStep('it', jobState, service).command, `pennon import ${command}`)
    })

  it('for a changed file is to restore the file, which no command can do', () => {
    const next = findNextStep('it', { ...rehearsed, changedFile: 'raw.jsonl' }, null)
    assert.equal(next.command, null)
    assert.match(formatNextStep(next), /^Next: restore raw\.jsonl as it was staged, then pennon import run it; /)
  })

  it('is the remedy, as a command or a sentence, if running again would only stop for the same reason', () => {
    const zone = { command: 'pennon import run FOLDER --source-timezone ZONE', why: 'ZONE is that of the project' }
    const key = { command: null, why: 'set another key, then pennon import run FOLDER' }
    const at = (jobState: NextStepState) => formatNextStep(findNextStep("ada's", jobState, null))
    assert.equal(
      at({ ...fresh, remedy: zone }),
      "Next: pennon import run 'ada'\\''s' --source-timezone ZONE (ZONE is that of the project)",
    )
    assert.equal(at({ ...approved, remedy: key }), "Next: set another key, then pennon import run 'ada'\\''s'")
    assert.match(
      at({ ...rehearsed, remedy: key }),
      /^Next: pennon import run .* --yes /,
      'the remedy replaces only the command that stopped',
    )
  })

  it('is none for a published import; the line only mentions how to discard it', () => {
    const line = formatNextStep(findNextStep('it', verified, inService('published')))
    assert.equal(line, 'Done. To undo it within 30 days: pennon import discard it')
  })

  it('can be pasted into a shell, whatever the folder is called', () => {
    assert.equal(
      formatNextStep({ ...findNextStep("ada's jobs", fresh, null), why: 'why' }),
      "Next: pennon import run 'ada'\\''s jobs' (why)",
    )
  })
})
