// The palette: every screen and action by its name, from any screen.

import { useNavigate } from '@tanstack/react-router'
import {
  Autocomplete,
  Dialog,
  Input,
  Menu,
  MenuItem,
  Modal,
  ModalOverlay,
  SearchField,
  useFilter,
} from 'react-aria-components'
import { Icon } from '../components/icon.tsx'
import type { IconName } from '../components/icon-names.ts'
import css from './palette.module.css'
import type { Screen } from './screens.ts'
import { signOut } from './sign-out.ts'
import { chooseTheme, themeChoices } from './themes.ts'

interface Command {
  readonly id: string
  readonly label: string
  readonly icon: IconName
  readonly run: () => void
}

export interface PaletteProps {
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly screens: readonly Screen[]
}

export function Palette({ isOpen, onClose, screens }: PaletteProps) {
  const { contains } = useFilter({ sensitivity: 'base' })
  const navigate = useNavigate()
  const commands: readonly Command[] = [
    ...screens.map(({ label, icon, to, params }) => ({
      ...{ id: to, label, icon },
      run: () => void navigate({ to, ...(params && { params }) }),
    })),
    ...themeChoices.map(({ id, label, icon }) => ({ id, label, icon, run: () => chooseTheme(id) })),
    { id: 'sign-out', label: 'Sign out', icon: 'log-out', run: signOut },
  ]
  return (
    <ModalOverlay
      className={css.veil!}
      isOpen={isOpen}
      isDismissable
      onOpenChange={isStillOpen => {
        if (!isStillOpen) onClose()
      }}
    >
      <Modal className={css.modal!}>
        <Dialog aria-label="Go to a screen, or do something" className={css.dialog!}>
          <Autocomplete filter={contains}>
            <SearchField aria-label="Name of a screen or an action" className={css.field!} autoFocus>
              <Icon name="search" />
              <Input className={css.input!} />
            </SearchField>
            <Menu
              aria-label="Screens and actions"
              className={css.commands!}
              items={commands}
              onAction={id => {
                onClose()
                commands.find(command => command.id === id)?.run()
              }}
              renderEmptyState={() => <p className={css.none}>No screen and no action has this name.</p>}
            >
              {({ id, label, icon }) => (
                <MenuItem id={id} textValue={label} className={css.command!}>
                  <Icon name={icon} />
                  {label}
                </MenuItem>
              )}
            </Menu>
          </Autocomplete>
        </Dialog>
      </Modal>
    </ModalOverlay>
  )
}
