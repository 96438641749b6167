"Package metadata comes from settings.ini, so that there is one place to look it up and to change it."
from configparser import ConfigParser
from pathlib import Path
from setuptools import find_packages, setup

here = Path(__file__).parent
config = ConfigParser()
config.read(here/'settings.ini', encoding='utf-8')
package = config['package']
lines = lambda key: [line for line in package[key].split('\n') if line]

setup(
    name=package['name'],
    description=package['description'],
    long_description=(here/'README.md').read_text(encoding='utf-8'),
    long_description_content_type='text/markdown',
    author=package['author'],
    keywords=package['keywords'],
    python_requires='>=' + package['min_python'],
    install_requires=lines('requirements'),
    extras_require={extra: lines(extra) for extra in ('notebooks', 'local', 'nli', 'scale', 'annotate', 'dev')},
    entry_points={'console_scripts': ['factlib=factlib.cli:main']},
    # data/ and the experiments are needed at run time, so the wheel carries them inside the package.
    packages=find_packages(include=['factlib', 'factlib.*']) + ['factlib.data', 'factlib.experiments'],
    package_dir={'factlib.data': 'data', 'factlib.experiments': 'nbs/experiments'},
    package_data={'factlib': ['py.typed'], 'factlib.data': ['**/*'], 'factlib.experiments': ['*.ipynb']},
    exclude_package_data={'factlib.data': ['public/**/*']}, # other people's, where `make data` was called
)
