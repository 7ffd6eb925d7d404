// Statsig: events, not gates and experiments. Source: docs/wire/import.md §1.10.

import mapping from '#importer/sources/generic/mappings/statsig.json' with { type: 'json' }
import { mappedSource } from './generic.ts'

export const statsig = mappedSource('statsig', 'events of Statsig (JSON)', mapping)
