// Early access features as pages list them for people to opt in. Source: docs/wire/evaluation.md 7.4.

import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'
import type { EarlyAccessStage } from '#core/resources/early-access-feature.ts'

/** The stage that a request without any stage gets. */
const stageUnlessNamed: EarlyAccessStage = 'beta'
/** Drafts and archived features are never listed, even when asked for. */
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

/** The features that may be shown, one JSON text each. `flagKey` is null when the flag was deleted. */
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

/** @param stages the values of `?stage=`, which may be given once, more than once or not at all. */
export function encodeEarlyAccessAnswer(
  features: readonly EarlyAccessText[],
  stages: string | readonly string[] | undefined,
) {
  const asked = new Set(stages === undefined ? [stageUnlessNamed] : [stages].flat())
  const texts = features.filter(({ stage }) => asked.has(stage)).map(({ json }) => json)
  return `{"earlyAccessFeatures":[${texts.join(',')}]}`
}
