// A progress of stages that shows nothing.

import type { StageProgress } from '#importer/job/progress.ts'

export const silentProgress: StageProgress = {
  begin: () => {},
  add: () => {},
  day: () => {},
  waiting: () => {},
  say: () => {},
}
