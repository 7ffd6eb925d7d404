import { DensitySwitch, ThemeSwitch } from '../../components/controls/preference-switches.tsx'
import { ControlsSection } from './controls-section.tsx'
import { FieldsSection } from './fields-section.tsx'
import { GridSection } from './grid-section.tsx'
import { OverlaysSection } from './overlays-section.tsx'
import { StatesSection } from './states-section.tsx'
import { TextSection } from './text-section.tsx'
import css from './workbench.module.css'

/** Every component in every state, for looking at and for the accessibility tests. */
export function Workbench() {
  return (
    <main className={css.page}>
      <div className={css.head}>
        <h1>Workbench</h1>
        <ThemeSwitch />
        <DensitySwitch />
      </div>
      <ControlsSection />
      <FieldsSection />
      <OverlaysSection />
      <StatesSection />
      <TextSection />
      <GridSection />
    </main>
  )
}
