// Statsig: events, not gates and experiments. Source: docs/wire/import.md §1.10.

import mapping from '#importer/sources/generic/mappings/statsig.json' with { type: 'json' }
import { createMappedSource } from './generic.ts'

export const statsig = createMappedSource('statsig', 'events of Statsig (JSON)', mapping)
