import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { envSetting } from '../../../../tests/support/env-setting.ts'
import { serveAnswers } from '../../../../tests/support/local-server.ts'
import { tempDir } from '../../../../tests/support/temp-dir.ts'
import type { Prompter } from '../../client/prompt.ts'
import { completePlanOptions, type GivenPlanOptions } from './complete-plan-options.ts'

const given: GivenPlanOptions = { maxRejectShare: '1%' }

describe('planning on a terminal', () => {
  it('asks for the address too if no instance answers at the default address, even though the key is known', async t => {
    const host = await serveAnswers(t, { '/array/phc_shop/config': {} })
    envSetting(t, 'PORT', '1')
    envSetting(t, 'PENNON_PROJECT_KEY', 'phc_shop')
    const { person, asked, printed } = answering('', `${host}/other`, host)
    const { options } = await completePlanOptions({ ...given, source: 'mixpanel' }, ['x.jsonl'], undefined, person)
    assert.deepEqual([options.host, options.projectKey], [host, 'phc_shop'])
    assert.deepEqual(asked, Array(3).fill('URL of the instance [http://127.0.0.1:1]'))
    assert.match(printed[0]!, /^no instance answers at http:\/\/127\.0\.0\.1:1 \([^)]+\)$/)
  })

  it('asks for nothing if the default instance knows the key, or if an address is given', async t => {
    const host = await serveAnswers(t, { '/array/phc_shop/config': {} })
    envSetting(t, 'PORT', new URL(host).port)
    for (const target of [{ projectKey: 'phc_shop' }, { projectKey: 'phc_other', host: 'http://127.0.0.1:1' }]) {
      const { person, asked } = answering()
      const { options } = await completePlanOptions(
        { ...given, source: 'mixpanel', ...target },
        ['x'],
        undefined,
        person,
      )
      assert.deepEqual([asked, options.host], [[], target.host])
    }
  })

  it('asks for the mapping of generic files, and accepts paths in the home folder', async t => {
    const home = tempDir(t)
    envSetting(t, 'HOME', home)
    mkdirSync(join(home, 'export'))
    for (const name of ['export/a.jsonl', 'mapping.json']) writeFileSync(join(home, name), '{}')
    const { person, printed } = answering('generic', '~/none', '~/export', '~/export/none.json', '~/mapping.json', '')
    const { options, files } = await completePlanOptions(given, [], undefined, person)
    assert.deepEqual([files, options.mapping], [[join(home, 'export')], join(home, 'mapping.json')])
    assert.equal(printed.length, 2, 'each of the two missing paths is reported')
  })

  it('asks for the public key again if anything else was typed, and never shows what was typed', async t => {
    const host = await serveAnswers(t, { '/array/phc_shop/config': {} })
    envSetting(t, 'PORT', new URL(host).port)
    envSetting(t, 'PENNON_PROJECT_KEY', '')
    const { person, asked, printed } = answering('phx_abcdefghijklmnopqrstuvwxyz', 'two words', 'phc_shop', '')
    const { options } = await completePlanOptions({ ...given, source: 'mixpanel' }, ['x'], undefined, person)
    assert.deepEqual([options.projectKey, asked.length], ['phc_shop', 4])
    assert.match(printed[0]!, /^that is a personal API key, a secret: set it in PENNON_PERSONAL_KEY\. /)
    assert.match(printed[1]!, /^that is not a project API key\. /)
    assert.doesNotMatch(printed.join(), /abcdef/)
  })

  it('asks for no mapping if the configuration contains one', async t => {
    const config = join(tempDir(t), 'config.json')
    writeFileSync(config, '{"mapping":{}}')
    const { person, asked } = answering('')
    await completePlanOptions({ ...given, source: 'generic', config }, ['x'], undefined, person)
    assert.match(asked.join(), /^Project API key/)
  })
})

/** A user who gives these answers in order. */
function answering(...answers: readonly string[]) {
  const asked: string[] = []
  const printed: string[] = []
  const person: Prompter = {
    canAsk: () => true,
    async ask(question, byDefault = '') {
      const answer = answers[asked.length]
      asked.push(byDefault === '' ? question : `${question} [${byDefault}]`)
      if (answer === undefined) throw new Error(`no answer is left for: ${question}`)
      return answer === '' ? byDefault : answer
    },
    print: line => void printed.push(line),
  }
  return { person, asked, printed }
}
