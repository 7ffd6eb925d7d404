// Events of Statsig, not its gates and experiments. Source: docs/wire/import.md §1.10.

import { mappedSource } from './generic.ts'
import mapping from './mappings/statsig.json' with { type: 'json' }

export const statsig = mappedSource('statsig', 'events of Statsig (JSON)', mapping)
