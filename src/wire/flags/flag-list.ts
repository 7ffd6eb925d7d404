// The list of flags that SDKs from before 2022 ask for first. These SDKs compute the value of a flag that the list
// calls simple from its percentage, and ask `/decide/` for any other flag. The list calls no flag simple: posthog-node
// 1.3 looks for the percentage under another name and turns a simple flag on for everyone, and the server's answer is
// always right. Flags of version 2 are not in it. Source: docs/wire/clients.md 2, 3; docs/wire/evaluation.md 11.4.

import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'
import { configVersion } from '#core/flags/definitions/read-rules.ts'
import { isSurveyFlagKey } from '#core/surveys/survey-flags.ts'

/** The whole body, in steps: one for each flag, including inactive ones, in the order of keys. */
export function* encodeFlagList(definitions: ProjectDefinitions): Generator<void, string> {
  const listed = definitions.flags.filter(
    flag => !flag.deleted && !isSurveyFlagKey(flag.key) && configVersion(flag.filters) === 1,
  )
  const texts: string[] = []
  for (const { id, key, name, active } of listed.toSorted((a, b) => (a.key < b.key ? -1 : 1))) {
    texts.push(JSON.stringify({ id, key, name, active, is_simple_flag: false, rollout_percentage: null }))
    yield
  }
  return `{"count":${texts.length},"next":null,"previous":null,"results":[${texts.join(',')}]}`
}
