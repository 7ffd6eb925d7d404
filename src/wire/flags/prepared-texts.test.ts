import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { FlagEvaluation } from '#core/flags/evaluation/evaluate-flags.ts'
import { PreparedTexts } from './prepared-texts.ts'

it('texts of flags are prepared once, unless one flag has too much text to cache', () => {
  const made: string[] = []
  const texts = new PreparedTexts(
    ({ key }, { slot }) => {
      made.push(`${key} ${slot}`)
      return 'x'.repeat(key === 'large' ? 300_000 : 300)
    },
    text => text.length,
  )
  const project = { flags: [{ key: 'large' }, { key: 'small' }] }
  const ask = (slot: number) => {
    made.length = 0
    texts.of({ project, outcomes: [{ slot }, { slot }] } as unknown as FlagEvaluation)
    return made.join()
  }
  for (let slot = 0; slot < 100; slot++) assert.equal(ask(slot), `large ${slot},small ${slot}`)
  assert.equal(ask(99), '')
  assert.equal(ask(0), 'large 0')
})
