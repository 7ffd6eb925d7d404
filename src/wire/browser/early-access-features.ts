// Early access features as pages list them, for people to opt in. Source: docs/wire/evaluation.md 7.4.

import type { EarlyAccessStage } from '#core/early-access/early-access-feature.ts'
import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'

/** Whoever names no stage gets these. */
const stageUnlessNamed: EarlyAccessStage = 'beta'
/** Drafts and what is archived are nobody's business, whoever asks for them. */
const publicStages: ReadonlySet<string> = new Set<EarlyAccessStage>([
  'concept',
  'alpha',
  'beta',
  'general-availability',
])

export interface EarlyAccessText {
  readonly stage: EarlyAccessStage
  readonly json: string
}

/** Those that may be shown, one text each. `flagKey` is null when the flag was deleted. */
export function encodeEarlyAccessFeatures(
  definitions: Pick<ProjectDefinitions, 'earlyAccessFeatures' | 'flags'>,
): EarlyAccessText[] {
  const keys = new Map(definitions.flags.map(flag => [flag.id, flag.key]))
  return definitions.earlyAccessFeatures
    .filter(({ stage }) => publicStages.has(stage))
    .map(({ id, name, description, stage, documentationUrl, payload, flagId }) => ({
      stage,
      json: JSON.stringify({
        ...{ id, name, description, stage, payload },
        documentationUrl: documentationUrl === '' ? null : documentationUrl,
        flagKey: flagId === null ? null : (keys.get(flagId) ?? null),
      }),
    }))
}

/** @param stages as the query has them, `?stage=` once, more than once or not at all. */
export function earlyAccessAnswer(
  features: readonly EarlyAccessText[],
  stages: string | readonly string[] | undefined,
) {
  const asked = new Set(stages === undefined ? [stageUnlessNamed] : [stages].flat())
  const texts = features.filter(({ stage }) => asked.has(stage)).map(({ json }) => json)
  return `{"earlyAccessFeatures":[${texts.join(',')}]}`
}
