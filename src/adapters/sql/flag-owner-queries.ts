// Experiments and early access features by their flags.

import type { Kysely } from 'kysely'
import type { FlagOwnerStore } from '#ports/flag-owner-store.ts'
import { earlyAccessFeatureOf } from './definition-rows.ts'
import type { StateSchema } from './schema.ts'

export function flagOwnerQueries(db: Kysely<StateSchema>): FlagOwnerStore {
  return {
    async listFlagOwners(projectId, flagIds) {
      if (flagIds.length === 0) return []
      const experiments = await db
        .selectFrom('experiment')
        .select(['id', 'feature_flag_id'])
        .where('project_id', '=', projectId)
        .where('feature_flag_id', 'in', flagIds)
        .where('deleted', '=', 0)
        .orderBy('id')
        .execute()
      const features = await db
        .selectFrom('early_access_feature')
        .selectAll()
        .where('project_id', '=', projectId)
        .where('feature_flag_id', 'in', flagIds)
        .execute()
      const experimentsOf = Map.groupBy(experiments, row => Number(row.feature_flag_id))
      const featuresOf = Map.groupBy(features.map(earlyAccessFeatureOf), feature => feature.flagId!)
      return [...new Set([...experimentsOf.keys(), ...featuresOf.keys()])].map(flagId => ({
        flagId,
        experimentIds: (experimentsOf.get(flagId) ?? []).map(row => Number(row.id)),
        features: featuresOf.get(flagId) ?? [],
      }))
    },
  }
}
